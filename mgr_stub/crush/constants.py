"""Constants of CRUSH maps."""

from __future__ import annotations

#: CRUSH_ITEM_NONE: a hole in a mapping, a position without an OSD.
NONE = 0x7FFFFFFF

#: 1.0 in 16.16 fixed point, of weights, reweights and primary affinities.
WEIGHT_ONE = 0x10000
