"""All shapes by name."""

from __future__ import annotations

from typing import Dict

from . import odd_shapes, shapes
from .cluster_spec import Shape

SHAPES: Dict[str, Shape] = {shape.__name__: shape for shape in (
    shapes.replicated_host, shapes.replicated_osd, shapes.erasure_host,
    shapes.erasure_osd, shapes.racks_3x2, shapes.racks_2x3,
    shapes.stretch_three, shapes.uneven_depth, shapes.uneven_depth_racks, shapes.hybrid,
    shapes.two_sites_by_take, shapes.take_below_root, shapes.classless, shapes.hosts_times_osds,
    shapes.buckets_times_osds_replicated, shapes.three_levels,
    odd_shapes.short_rack, odd_shapes.left_out, odd_shapes.uneven_sites, odd_shapes.second_tree,
    odd_shapes.overlapping_takes, odd_shapes.types_upside_down, odd_shapes.fixed_osd,
    odd_shapes.replicated_indep, odd_shapes.rejected_nested, odd_shapes.rejected_zones)}
