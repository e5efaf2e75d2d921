"""The memory of this process."""
from __future__ import annotations

import resource
import sys


def peak_bytes() -> int:
    """The most memory that this process has ever had resident."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
