"""What happens in the simulated cluster over time."""
