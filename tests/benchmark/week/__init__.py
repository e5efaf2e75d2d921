"""A simulated week, and whose processor time it takes."""
