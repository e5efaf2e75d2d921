"""The true optima of small clusters, and how far plans are from them."""
