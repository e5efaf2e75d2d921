"""Large made clusters: seconds and memory, and how they grow."""
