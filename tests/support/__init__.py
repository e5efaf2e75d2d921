"""Helpers of all tests.

Clusters as the mgr's API gives them: `unit_cluster` by hand, `rule_shapes` one for each kind of
CRUSH rule, `random_clusters` small ones of a seed, `weighted_clusters` with weights lowered by an
operator, `made_clusters` larger ones by name, with their plans. State files for the simulator:
`stub_states` by hand, `crush_cluster` placed by CRUSH. `rules`, `units` and `releases` are the
constants of all of them.
"""
