"""check_certificate.py STATE EVAL SHOW (JSON files): asserts what certificates of a plan say."""
import json, lzma, math, sys  # noqa: E401
from typing import Any, Iterator, Set
def blocks(pool: Any, steps: Any) -> Iterator[Any]:   # per take: (pool, step, most shards of a PG
    size, left, take, kinds, nums = pool["size"], pool["size"], None, [""], [0]   # per bucket,
    for step in steps:                                # shards, the first of them)
        if step["op"] == "take":
            take, kinds, nums = step, [], []
        elif step["op"].startswith("choose"):
            kinds, nums = [*kinds, step["type"]], [*nums, step["num"] + size * (step["num"] <= 0)]
        elif step["op"] == "emit":
            n = min(left, math.prod(nums))
            most = {t: math.prod(nums[i + 1:]) for i, t in enumerate(kinds) if t != "osd"}
            yield pool["pool"], take, most, n, size - left
            left -= n
def room(crush: Any, item: Any, most: Any, osds: Set[int], above: Set[str]) -> int:
    if item["id"] >= 0:   # shards of one PG that these OSDs, where the rule reaches them, can have
        return int(item["id"] in osds and item["weight"] > 0 and above >= set(most))
    kind, items = crush[item["id"]]["type_name"], crush[item["id"]]["items"]
    return min(sum(room(crush, child, most, osds, above | {kind}) for child in items),
               most.get(kind, len(osds)))
def check_cut(cut: Any, crush: Any, rules: Any, pgs: Any, sums: Any) -> None:
    kept, osds, known, leave = cut["kept"], set(cut["osds"]), sums["size_bytes"].keys(), 0
    assert 0 < len(osds & known) == len(cut["osds"]), "OSDs that do not count, or none"
    assert all(cut[key] == sum(of[o] for o in osds) for key, of in sums.items()), "sums of a cut"
    for p, take, most, n, i in rules:   # cut[p]: shards of each PG that are on its OSDs
        here = [(up[i:i + n], shard) for of, up, shard in pgs.values() if of == p]
        elsewhere = min(n, room(crush, dict(id=take["item"], weight=1), most, known - osds, set()))
        stays = sum(shard * max(0, len(known & up) - elsewhere) for up, shard in here)
        leave += sum(shard * len(osds.intersection(up)) for up, shard in here)
        own = dict(pool=p, take=take["item_name"], shards=n, most_elsewhere=elsewhere, limits=[
            dict(type=kind, most_shards=m) for kind, m in most.items() if m < n])
        mine = next((k for k in kept if k == {**k, **own}), {"kept_bytes": 0})
        assert mine["kept_bytes"] <= 1.03 * stays + 6e7, f"kept_bytes of pool {p}"
        kept, leave = [k for k in kept if k is not mine], leave - min(stays, mine["kept_bytes"])
        cut[p] = cut.get(p, 0) + n - elsewhere
    assert not kept, "limits of a pool, or a pool that has nothing there"
    assert cut["can_leave_bytes"] >= 0.9999 * leave - 1e-6 * cut["used_bytes"], "more can leave"
def check(state: Any, answer: Any, plan: Any) -> str:
    dump, now, proof = state["osd_dump"], state["pg_dump"]["pg_map"], answer["certificates"]
    crush, held = {b["id"]: b for b in state["crush_dump"]["buckets"]}, set[int]()
    steps = {rule["rule_id"]: rule["steps"] for rule in state["crush_dump"]["rules"]}
    rules = [block for p in dump["pools"] for block in blocks(p, steps.get(p["crush_rule"], ()))]
    assert proof["osdmap_epoch"] == dump["epoch"] == plan["osdmap_epoch"], "another osdmap epoch"
    fs = {entry["osd"]: entry["statfs"] for entry in now["osd_stats"]}
    size = {o["osd"]: fs[o["osd"]]["total"] for o in dump["osds"] if o["up"] and o["in"]}
    used = {o: min(size[o], size[o] - fs[o]["available"]) for o in size}
    full = {o: max(int(size[o] * dump["full_ratio"]) + 1, used[o]) for o in size}
    code, pgs, later = dump["erasure_code_profiles"], dict[str, Any](), dict(used)
    k = {p["pool"]: int(code.get(p["erasure_code_profile"], {}).get("k", 1)) for p in dump["pools"]}
    for pg in now["pg_stats"]:
        assert set(pg["up"]) == set(pg["acting"]), "data in flight"
        p, s, here = int(pg["pgid"].split(".")[0]), pg["stat_sum"], size.keys() & pg["up"]
        pgs[pg["pgid"]] = p, pg["up"], -(-s["num_bytes"] // k[p]) + s["num_omap_bytes"]   # ± 3 %
        if here and pgs[pg["pgid"]][2]:
            held.update(here, [~p])
    for cut in proof["cuts"]:
        check_cut(cut, crush, rules, pgs, dict(size_bytes=size, used_bytes=used, full_bytes=full))
    for move in plan["moves"]:
        assert abs(move["bytes"] - (s := pgs[move["pgid"]][2])) <= 0.03 * s + 6e7, "bytes of a move"
        later[move["from"]] -= move["bytes"]
        later[move["to"]] += move["bytes"]
    proven = [~c["id"] for c in proof["pools"]]
    for c in proof["classes"]:
        mine, proven = size.keys() & c["osds"], proven + c["osds"]
        cut, t = proof["cuts"][c["cut"]], max(later[o] / size[o] for o in mine)
        assert set(cut["osds"]) <= mine, "OSDs of another set"
        assert abs(c["bound_utilization"] - (cut["used_bytes"] - cut["can_leave_bytes"])
                   / cut["size_bytes"]) <= 1e-9, "bound of a set"
        assert abs(c["planned_max_utilization"] - t) <= 1e-9, "planned maximum"
        least = sum(max(0, used[o] - t * size[o]) for o in mine)
        assert c["least_moved_bytes"] <= least + 1, "least_moved_bytes"
    assert {proven.count(o) for o in held} <= {1}, "a set or pool with data is missing"
    for c, cut in [(c, proof["cuts"][c["cut"]]) for c in proof["pools"]]:
        assert 0 < (kept := c["kept_shards"]) <= cut[c["id"]] + 1e-9, "kept_shards"
        best = k[c["id"]] * (cut["full_bytes"] - cut["used_bytes"] + cut["can_leave_bytes"]) / kept
        assert c["split_bytes"] >= best * (1 - 1e-9) - 2, "split_bytes"
    return "accepted"
if __name__ == "__main__":  # noqa: E305
    print(check(*[json.load((lzma.open if f.endswith("xz") else open)(f)) for f in sys.argv[1:]]))
