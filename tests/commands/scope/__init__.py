"""What filters, drains and `off` leave to be moved, and what reports say of it."""
