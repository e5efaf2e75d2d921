"""Made clusters of many shapes and sizes."""
