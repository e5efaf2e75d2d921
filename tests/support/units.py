"""Units of bytes."""
from __future__ import annotations

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
