"""Tables of pools: their figures are those of the cluster."""
