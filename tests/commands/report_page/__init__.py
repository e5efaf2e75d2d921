"""`report`, asked of the module in the simulated mgr."""
