"""The cost of one call, from the start of the process to its end."""

import os

from bench import durations, row, times
from jobs import details
from processes import seconds


@row("start", "--version", "0.5 x or less", ("most", 0.5), "redis-cli --version")
def start(bench):
    rounds = bench.pick(300, 100)
    return durations(times(rounds, lambda: seconds(bench.ours("--version")), lambda: seconds(["redis-cli", "--version"])))


@row("post-redis", "post, one job, Redis", "0.67 x or less", ("most", 0.67), "redis-cli HSET")
def post_redis(bench):
    redis = bench.redis
    redis.clear()
    words = [f"{name}={value}" for name, value in details(1).items()]
    ours = bench.ours("--board", redis.url("one"), "post", "job", *words)
    bench.output(*ours[1:])
    posting = redis.client.hvals("one:listings")[0]
    theirs = redis.cli("HSET", "other", "field", os.fsdecode(posting.replace(b"\0", b"0")))
    return durations(times(bench.pick(300, 100), lambda: seconds(ours), lambda: seconds(theirs)))
