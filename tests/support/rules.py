"""CRUSH rules by name, as crush_maps.crush_map takes them."""
from __future__ import annotations

#: Whole trees, whatever the device classes.
HOST_RULE = "take default; chooseleaf firstn 0 host; emit"
OSD_RULE = "take default; choose firstn 0 osd; emit"
EC_HOST_RULE = "take default; chooseleaf indep 0 host; emit"
EC_OSD_RULE = "take default; choose indep 0 osd; emit"

HDD_HOSTS = "take default~hdd; chooseleaf firstn 0 host; emit"
SSD_HOSTS = "take default~ssd; chooseleaf firstn 0 host; emit"
HDD_OSDS = "take default~hdd; choose firstn 0 osd; emit"
EC_HDD_HOSTS = "take default~hdd; chooseleaf indep 0 host; emit"
#: The first copy on SSD, the others on HDD.
SSD_FIRST = ("take default~ssd; chooseleaf firstn 1 host; emit;"
             "take default~hdd; chooseleaf firstn -1 host; emit")
#: Two shards in each of three, or of two, racks.
EC_PAIRS_IN_3_RACKS = "take default~hdd; choose indep 3 rack; chooseleaf indep 2 host; emit"
EC_PAIRS_IN_2_RACKS = "take default~hdd; choose indep 2 rack; chooseleaf indep 2 host; emit"
