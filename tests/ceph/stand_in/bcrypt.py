"""Stand-in for bcrypt in the module folder of a test cluster, never in a real one.

Debian 13 builds bcrypt with PyO3, which refuses the sub-interpreters of Ceph 18's mgr, so that no
Python module loads there. `mgr_util` needs only that these names exist; the dashboard, which would
hash passwords, is not used by the tests.
"""

from __future__ import annotations

import hashlib


def gensalt(rounds: int = 12, prefix: bytes = b"2b") -> bytes:
    return b"$" + prefix + b"$%02d$" % rounds


def hashpw(password: bytes, salt: bytes) -> bytes:
    return salt + hashlib.sha256(salt[:7] + password).hexdigest().encode()


def checkpw(password: bytes, hashed: bytes) -> bool:
    return hashpw(password, hashed[:7]) == hashed
