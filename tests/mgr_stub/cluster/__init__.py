"""PGs and upmaps of the simulated cluster."""
