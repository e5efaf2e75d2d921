"""The demo cluster: its state file.

May import state and the layers below it.
"""

from __future__ import annotations

import os

#: The state file that is loaded if none is named.
DEMO_STATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster.json.xz")
