"""What looks and plans after an event cost on one cluster."""
