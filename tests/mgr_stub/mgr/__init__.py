"""The simulated mgr and monitor as a module meets them."""
