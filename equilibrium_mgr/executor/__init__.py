"""The executor walks the cluster to a plan's placement in batches; it alone sends anything."""
