"""check_certificate.py STATE.json[.xz] EVAL.json: asserts what certificates of `eval PLAN` say."""
import json, lzma, math, sys  # noqa: E401
from typing import Any, Dict, Iterator, Set
def blocks(pool: Any, rule: Any) -> Iterator[Any]:
    """Per take: (pool, step, most shards of a PG per bucket, shards, the first of them)."""
    size, left, take, kinds, nums = pool["size"], pool["size"], None, [""], [0]
    for step in rule["steps"]:
        if step["op"] == "take":
            take, kinds, nums = step, [], []
        elif step["op"].startswith("choose"):
            kinds, nums = [*kinds, step["type"]], [*nums, step["num"] + size * (step["num"] <= 0)]
        elif step["op"] == "emit":
            n = min(left, math.prod(nums))
            most = [dict(type=t, most_shards=math.prod(nums[i + 1:])) for i, t in enumerate(kinds)]
            most = [x for x in most if x["most_shards"] < n and x["type"] != "osd"]
            yield pool["pool"], take, most, n, size - left
            left -= n

def room(crush: Any, item: Any, most: Any, osds: Set[int]) -> int:
    """Shards of one PG that these OSDs can have under a bucket."""
    if item["id"] >= 0:
        return int(item["id"] in osds and item["weight"] > 0)
    below = sum(room(crush, child, most, osds) for child in crush[item["id"]]["items"])
    name = crush[item["id"]]["type_name"]
    return min([below] + [limit["most_shards"] for limit in most if limit["type"] == name])

def check_cut(cut: Any, crush: Any, rules: Any, pgs: Any, sums: Any) -> None:
    kept, osds, leave = {(k["pool"], k["take"]): k for k in cut["kept"]}, set(cut["osds"]), 0
    assert osds <= set(sums["size"]) and len(osds) == len(cut["osds"]), "OSDs that do not count"
    for key, of in sums.items():
        assert cut[f"{key}_bytes"] == sum(of[osd] for osd in osds), f"{key}_bytes of a cut"
    cut["held"] = dict.fromkeys(pgs, 0)   # pool → shards of each PG that are on these OSDs
    for p, take, most, n, i in rules:   # a shard counts as num_bytes ÷ k and omap, within 3 %
        root, one = {"id": take["item"], "weight": 1}, sum(shard for _, shard in pgs[p])
        stays = n - min(n, room(crush, root, most, set(sums["size"]) - osds))
        here = sum(shard * len(osds.intersection(up[i:i + n])) for up, shard in pgs[p])
        leave, cut["held"][p] = leave + here - stays * one, cut["held"][p] + stays
        k = kept.pop((p, take["item_name"]), dict(shards=n, most_elsewhere=n - stays, kept_bytes=0))
        assert (k["shards"], k.get("limits", most)) == (n, most), f"limits of pool {p}"
        assert k["most_elsewhere"] == n - stays, f"most_elsewhere of pool {p}"
        assert abs(k["kept_bytes"] - stays * one) <= stays * one * 0.03 + 6e7, f"kept of pool {p}"
    assert not kept, "a pool that has nothing there"
    assert cut["can_leave_bytes"] >= 0.9999 * leave - 1e-6 * cut["used_bytes"], "more can leave"

def check(state: Any, proof: Any) -> str:
    dump, pg_map, crush = state["osd_dump"], state["pg_dump"]["pg_map"], state["crush_dump"]
    assert proof["osdmap_epoch"] == dump["epoch"], "another osdmap epoch"
    fs = {entry["osd"]: entry["statfs"] for entry in pg_map["osd_stats"]}
    size = {o["osd"]: fs[o["osd"]]["total"] for o in dump["osds"] if o["up"] and o["in"]}
    used = {o: size[o] - fs[o]["available"] for o in size}
    full = {o: max(int(size[o] * dump["full_ratio"]) + 1, used[o]) for o in size}
    rules = [block for pool in dump["pools"] for rule in crush["rules"]
             if rule["rule_id"] == pool["crush_rule"] for block in blocks(pool, rule)]
    profiles = {**dump["erasure_code_profiles"], "": {}}
    k = {p["pool"]: int(profiles[p["erasure_code_profile"]].get("k", 1)) for p in dump["pools"]}
    pgs: Dict[int, Any] = {pool: [] for pool in k}
    for pg in pg_map["pg_stats"]:
        assert set(pg["up"]) == set(pg["acting"]), "data in flight"
        p, stat = int(pg["pgid"].split(".")[0]), pg["stat_sum"]
        pgs[p] += [(pg["up"], -(-stat["num_bytes"] // k[p]) + stat["num_omap_bytes"])]
    for cut in proof["cuts"]:
        buckets = {bucket["id"]: bucket for bucket in crush["buckets"]}
        check_cut(cut, buckets, rules, pgs, dict(size=size, used=used, full=full))
    for c in proof["classes"]:
        cut, t = proof["cuts"][c["cut"]], c["planned_max_utilization"]
        mine = {d["id"] for d in crush["devices"] if d.get("class", "none") == c["device_class"]}
        assert set(cut["osds"]) <= mine, "OSDs of another class"
        rest = (cut["used_bytes"] - cut["can_leave_bytes"]) / cut["size_bytes"]
        assert abs(c["bound_utilization"] - rest) <= 1e-9, "bound of a class"
        least = sum(max(0, used[o] - t * size[o]) for o in mine & set(size))
        assert c["least_moved_bytes"] <= least + 1, "least_moved_bytes"
    for c in proof["pools"]:
        cut, held = proof["cuts"][c["cut"]], proof["cuts"][c["cut"]]["held"][c["id"]]
        assert held and abs(c["kept_shards"] - held) <= 1e-9, "kept_shards"
        best = k[c["id"]] * (cut["full_bytes"] - cut["used_bytes"] + cut["can_leave_bytes"]) / held
        assert abs(c["split_bytes"] - best) <= 1e-9 * best + 2, "split_bytes"
    return "accepted"
if __name__ == "__main__":
    state = (lzma.open if sys.argv[1].endswith("xz") else open)(sys.argv[1])
    print(check(json.load(state), json.load(open(sys.argv[2]))["certificates"]))
