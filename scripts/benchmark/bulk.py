"""Bulk posts."""

import os
import shutil
import uuid

import jobs
from bench import rates, row, times
from processes import output, seconds

#: Posts until the JIT compiler of a Java server has warmed up.
WARM = 100_000


def post_all(bench, url, path):
    return seconds(bench.ours("--board", url, "post", "-q", "--from", path))


def against_taskflow(bench, server, clear, count, rival_count):
    """Posts to new boards in alternation."""
    path = jobs.write(bench.path("bulk.jsonl"), count)

    def ours():
        clear()
        return post_all(bench, server.url(uuid.uuid4().hex), path)

    def theirs():
        clear()
        return bench.peer(server.taskflow(uuid.uuid4().hex), "post", rival_count)

    return rates(times(bench.pick(5, 3), ours, theirs), count, rival_count)


@row("bulk-redis", "post --from, Redis", "40 x or more", ("least", 40), "TaskFlow")
def bulk_redis(bench):
    counts = bench.pick((50_000, 3_000), (20_000, 1_000))
    bench.forget("redis")
    return against_taskflow(bench, bench.redis, bench.redis.clear, *counts)


@row("bulk-redis-pipe", "post --from, Redis", "0.4 x or more", ("least", 0.4), "HSET by redis-cli --pipe")
def bulk_redis_pipe(bench):
    count = bench.pick(50_000, 20_000)
    redis = bench.redis
    bench.forget("redis")
    path = jobs.write(bench.path("bulk.jsonl"), count)
    post_all(bench, redis.url("bulk"), path)
    commands = bench.path("bulk.resp")
    with open(commands, "wb") as file:
        for posting in redis.client.hvals("bulk:listings"):
            words = (b"HSET", b"other", str(uuid.uuid4()).encode(), posting)
            file.write(b"*4\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))

    def ours():
        redis.clear()
        return post_all(bench, redis.url("bulk"), path)

    def theirs():
        redis.clear()
        return seconds(redis.cli("--pipe"), stdin=commands)

    return rates(times(bench.pick(9, 5), ours, theirs), count, count)


@row("bulk-zookeeper", "post --from, ZooKeeper", "100 x or more", ("least", 100), "TaskFlow")
def bulk_zookeeper(bench):
    counts = bench.pick((20_000, 300), (5_000, 100))
    warm(bench, bench.zookeeper)
    return against_taskflow(bench, bench.zookeeper, lambda: None, *counts)


def warm(bench, server):
    """Warms up a server on Java.

    Its first jobs take several times as long as later ones, which is not typical of a server.
    """
    path = jobs.write(bench.path("warm.jsonl"), WARM)
    post_all(bench, server.url(uuid.uuid4().hex), path)


@row("bulk-embedded", "post --from, embedded", "0.6 x or more", ("least", 0.6), "sqlite3, one transaction")
def bulk_embedded(bench):
    """Feeds sqlite3 the same rows as statements, into existing empty tables and indexes."""
    count = bench.pick(100_000, 30_000)
    path = jobs.write(bench.path("bulk.jsonl"), count)
    full, blank, copy = (bench.path(f"bulk-{name}.db") for name in ("full", "blank", "copy"))
    post_all(bench, f"sqlite:{full}", path)
    output(["sqlite3", blank, "PRAGMA journal_mode = wal"])
    schema = output(["sqlite3", full, ".schema --nosys"])
    output(["sqlite3", blank], stdin=schema)
    statements = bench.path("bulk.sql")
    with open(statements, "w") as file:
        rows = output(["sqlite3", full, ".mode insert job", "SELECT * FROM job"])
        file.write(f"BEGIN;\n{rows}COMMIT;\n")

    def ours():
        remove(copy)
        return post_all(bench, f"sqlite:{copy}", path)

    def theirs():
        remove(copy)
        shutil.copyfile(blank, copy)
        return seconds(["sqlite3", copy], stdin=statements)

    return rates(times(bench.pick(9, 5), ours, theirs), count, count)


def remove(path):
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
