"""ceph.conf of a cluster on loopback: small, quick, and as patient as a busy machine needs."""

from __future__ import annotations

#: To be formatted with the cluster's fsid, port, folder and the bytes of an OSD's file. Each OSD
#: binds eight ports: Ceph's own range has room for sixty OSDs.
CONF = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{port}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = {work}
log file = {work}/$name.log
pid file =
keyring = {work}/keyring
mon data = {work}/$name
mgr data = {work}/$name
osd data = {work}/$name
crash dir = {work}/crash
ms bind ipv6 = false
ms bind port min = 10000
ms bind port max = 30000
mon cluster log file = {work}/cluster.log
mon data avail warn = 1
mon data avail crit = 1
mon allow pool size one = true
mon max pg per osd = 2000
mon warn on insecure global id reclaim = false
mon warn on insecure global id reclaim allowed = false
mon osd adjust heartbeat grace = false
osd pool default pg autoscale mode = off
osd delete sleep hdd = 0
osd delete sleep hybrid = 0
osd delete sleep ssd = 0
osd crush update on start = false
osd class update on start = false
mgr module path = {work}/modules
mgr stats period = 1
mgr tick period = 1
osd op queue = wpq
osd recovery sleep = 0
osd snap trim sleep = 0
osd max backfills = 4
osd recovery max active = 8
osd mclock skip benchmark = true
osd heartbeat grace = 60
osd fast shutdown = true
osd memory target = 939524096
bluestore cache autotune = false
bluestore cache size = 33554432
bluestore block size = {block}

[mon]
admin socket = {work}/$name.asok
[mgr]
admin socket = {work}/$name.asok
[osd]
admin socket = {work}/$name.asok
"""
