"""Listings of a board with half of its jobs claimed."""

from bench import durations, rates, row, times
from processes import processor, seconds


def list_all(bench, url):
    return seconds(bench.ours("--board", url, "list"))


def against_taskflow(bench, kind, server, count, rounds):
    name, url = bench.half_claimed(kind, count)
    theirs = server.taskflow(name)
    taken = times(rounds, lambda: list_all(bench, url), lambda: bench.peer(theirs, "list", count))
    return rates(taken, count, count)


@row("list-redis-hgetall", "list, 100,000 jobs, Redis", "2 x or less", ("most", 2.0), "redis-cli HGETALL")
def list_redis_hgetall(bench):
    name, url = bench.half_claimed("redis", 100_000)
    theirs = bench.redis.cli("HGETALL", f"{name}:listings")
    taken = times(bench.pick(15, 7), lambda: list_all(bench, url), lambda: seconds(theirs))
    return durations(taken)


@row("list-cpu-redis", "processor, list, 20,000 jobs, Redis", "2.5 x or less", ("most", 2.5), "redis-cli HGETALL")
def list_cpu_redis(bench):
    name, url = bench.half_claimed("redis", 20_000)
    ours, theirs = bench.ours("--board", url, "list"), bench.redis.cli("HGETALL", f"{name}:listings")
    return durations(times(bench.pick(25, 15), lambda: processor(ours), lambda: processor(theirs)))


@row("list-redis", "list, 100,000 jobs, Redis", "100 x or more", ("least", 100), "TaskFlow")
def list_redis(bench):
    if bench.is_quick:
        # TaskFlow's time per job does not depend on the board's size; ours is measured above.
        return against_taskflow(bench, "redis", bench.redis, 10_000, 3)
    return against_taskflow(bench, "redis", bench.redis, 100_000, 3)


@row("list-zookeeper", "list, 20,000 jobs, ZooKeeper", "100 x or more", ("least", 100), "TaskFlow")
def list_zookeeper(bench):
    count = bench.pick(20_000, 3_000)
    return against_taskflow(bench, "zookeeper", bench.zookeeper, count, bench.pick(3, 1))


def as_json(bench, kind):
    """Compares complete JSON objects with lines of fields."""
    _, url = bench.half_claimed(kind, 100_000)
    listing = bench.ours("--board", url, "list")
    taken = times(bench.pick(15, 7), lambda: seconds([*listing, "--json"]), lambda: seconds(listing))
    return durations(taken)


LINES = "list as lines"


@row("list-json-redis", "list --json, 100,000 jobs, Redis", "2 x or less", ("most", 2.0), LINES)
def list_json_redis(bench):
    return as_json(bench, "redis")


@row("list-json-embedded", "list --json, 100,000 jobs, embedded", "2 x or less", ("most", 2.0), LINES)
def list_json_embedded(bench):
    return as_json(bench, "embedded")
