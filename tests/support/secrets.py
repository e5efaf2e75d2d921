"""Names and addresses that can be told apart, wherever Ceph has them."""

from __future__ import annotations

from typing import Any, Dict

ADDRESS = "10.11.12.13"
#: One of these is in each of them.
SECRETS = ("secret", "10.11.12", "5ec2e7f5")

_CLASSES = {"hdd": "hdd", "ssd": "secretssd"}
_TYPES = {"host": "secretblade", "chassis": "secretchassis"}


def secret_name(bucket: str) -> str:
    name, tilde, device_class = bucket.partition("~")
    return "secret-" + name + tilde + _CLASSES.get(device_class, device_class)


def secret_type(name: str) -> str:
    return _TYPES.get(name, name)


def with_secrets(state: Dict[str, Any]) -> Dict[str, Any]:
    """The state with such names and addresses."""
    osd_map, crush = state["osd_dump"], state["crush_dump"]
    osd_map["fsid"] = "5ec2e7f5-1d00-4000-8000-000000000001"
    profiles = osd_map["erasure_code_profiles"]
    for pool in osd_map["pools"]:
        pool["pool_name"] = f"a~secret~pool-{pool['pool']}"
        pool["pool_snaps"] = [{"snapid": 1, "stamp": "2026-01-02", "name": "secret snapshot"}]
        pool["application_metadata"] = {"secret-app": {"secret-key": "secret-value"}}
        if pool["erasure_code_profile"]:
            profile = profiles.pop(pool["erasure_code_profile"])
            profile.update({"crush-root": "secret", "crush-device-class": "secret"})
            profiles[pool["pool_name"]] = profile
            pool["erasure_code_profile"] = pool["pool_name"]
    for device in crush["devices"]:
        device["class"] = _CLASSES[device["class"]]
    for kind in crush["types"]:
        kind["name"] = secret_type(kind["name"])
    for bucket in crush["buckets"]:
        bucket["name"] = secret_name(bucket["name"])
        bucket["type_name"] = secret_type(bucket["type_name"])
    for rule in crush["rules"]:
        rule["rule_name"] = f"secret-pool-2_rule_{rule['rule_id']}"
        for step in rule["steps"]:
            if "item_name" in step:
                step["item_name"] = secret_name(step["item_name"])
            if "type" in step:
                step["type"] = secret_type(step["type"])
    osd_map["cluster_snapshot"] = "secret"
    for osd in osd_map["osds"]:
        osd["uuid"] = f"5ec2e7f5-1d00-4000-8000-1{int(osd['osd']):011}"
        address = ADDRESS + ":6800/1"
        osd.update(public_addr=address, cluster_addr=address, heartbeat_back_addr=address)
        osd["public_addrs"] = {"addrvec": [{"type": "v2", "addr": ADDRESS + ":6800", "nonce": 1}]}
    osd_map["blocklist"] = {ADDRESS + ":0/1": "2026-01-02T00:00:00.000000+0000"}
    osd_map["range_blocklist"] = {ADDRESS + "/24": "2026-01-02T00:00:00.000000+0000"}
    osd_map["crush_node_flags"] = {"secret-host0": ["noout"]}
    return state
