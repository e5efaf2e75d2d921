"""Lines of the simulation that are refused: the code, and words of the message."""
from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import rows

REFUSED = rows("""
22  sim                                                 is not known
22  sim backfill rate fast
22  sim balancer dance
22  sim clock
22  sim clock jump
22  sim clock jump -x
22  sim dance                                           'sim dance' is not known
 2  sim delete none 1G
22  sim failover now                                    takes no arguments
22  sim failover x
22  sim flag set
22  sim flag set dance
 2  sim grow none 1G/1h
22  sim grow rbd 1G
22  sim grow rbd 1G/
22  sim grow rbd 1G/0s
22  sim grow rbd x/1h
22  sim help me
22  sim host
22  sim host add default 1 1T
22  sim host add x
22  sim host add x 0 1T
22  sim host add x 1 1T rack=r
22  sim host add x 1 1T under=nowhere
22  sim host add x 1 big
 2  sim host down nowhere
22  sim inconsistent 2.0
22  sim inconsistent 2.0 maybe
22  sim meanwhile 1 off
22  sim meanwhile before-send 1 sim flag set noout
22  sim mgr
22  sim mgr fail after=1s
22  sim mgr fail at
22  sim mgr fail at before-lunch
22  sim mgr fail at before-send 0
22  sim mgr fail at before-send x
22  sim mgr fail at noon
22  sim mgr fail now
22  sim mgr fail takeover=soon
22  sim mon
22  sim mon delay
22  sim mon delay long
22  sim mon down now
22  sim mon drop
22  sim mon drop 2
22  sim mon lose x
22  sim mon reject
22  sim mon reject 2
22  sim osd
22  sim osd allocation
22  sim osd allocation 0 1
22  sim osd allocation 1.5
 2  sim osd allocation 2 0 pool=none
22  sim osd allocation x 1
22  sim osd crush-reweight 1 -1
 2  sim osd crush-reweight 99 1
22  sim osd dance 1
22  sim osd full-ratios 0.8 0.9
22  sim osd full-ratios 0.9 0.8 0.95
22  sim osd lose
 2  sim osd lose 99
22  sim osd out
 2  sim osd out 1 99
 2  sim osd out 99
22  sim osd out x
22  sim osd reweight 1
22  sim osd reweight 1 2
22  sim osd reweight 1 nan
 2  sim osd reweight 99 1
22  sim peering 0
22  sim pool
22  sim pool add x                                      knows only
22  sim pool create
17  sim pool create rbd pg_num=4 size=3
22  sim pool create x
22  sim pool create x pg_num=0 size=3
22  sim pool create x pg_num=4
22  sim pool create x pg_num=4 size=3 k=3
22  sim pool create x pg_num=4 size=3 m=1
 2  sim pool create x pg_num=4 size=3 rule=none
22  sim pool create x pg_num=four size=3
22  sim pool optimize ec 5000
22  sim pool optimize rbd 16K
 2  sim pool pg_num none 4
22  sim pool pg_num rbd 0
22  sim pool pg_num rbd 99999999
22  sim pool rm
 2  sim pool rm none
22  sim run                                             needs a time span
22  sim run -1h                                         is not a time span
22  sim run 2 fortnights                                needs a time span
22  sim run 2x                                          is not a time span
22  sim save                                            needs one file name
22  sim save a b                                        needs one file name
22  sim scrub 1.0
 2  sim scrub 9.0 1m
22  sim stats
22  sim stats freeze
22  sim stats hang 1m
22  sim stats lag x
22  sim stats noise -1
 2  sim swell nowhere 1
22  sim swell rbd
 2  sim write none 1G
22  sim write rbd
22  sim write rbd much
""")


@pytest.mark.parametrize("code, line, words", REFUSED)
def test_a_line_that_is_refused_changes_nothing(session: Any, code: str, line: str,
                                                words: str) -> None:
    before = session.cluster.map
    rc, out, err = session.command(line)
    assert (rc, out) == (-int(code), "")
    assert err and "\n" not in err and words in err
    assert session.cluster.map is before and session.module is not None
