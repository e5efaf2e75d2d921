"""Tables of pools and OSDs, and evaluations: their figures are those of the cluster."""
