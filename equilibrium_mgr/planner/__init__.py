"""The planner: a pure function from a snapshot to a plan. Nothing here knows the mgr or a clock."""
