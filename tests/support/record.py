"""Answers that are recorded, by name; `--rewrite-screens` records them again."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def check_record(path: Path, name: str, found: Any, config: pytest.Config) -> None:
    """Compares an answer with the one that a file of JSON has under this name."""
    recorded = json.loads(path.read_text())
    if config.option.rewrite_screens:
        recorded[name] = found
        path.write_text(json.dumps(recorded, indent=1) + "\n")
    assert json.loads(json.dumps(found)) == recorded[name]
