"""Cases of a test as a table of text: a line a case, columns two or more spaces apart."""
from __future__ import annotations

import re
from typing import List


def rows(text: str) -> List[List[str]]:
    """The cells of each line; shorter lines end in empty ones."""
    table = [re.split(" {2,}", line.strip()) for line in text.strip().splitlines()]
    width = max(map(len, table))
    return [cells + [""] * (width - len(cells)) for cells in table]
