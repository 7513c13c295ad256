"""Growth of the cost of listings and claims with the size of the board."""

import datetime
import json
import statistics

import jobs
from bench import Figure, row
from jobs import SIZE
from processes import peak, watch

#: The cost per job may grow by at most this factor on a board ten times as large.
FLAT = 1.5

#: Jobs that a conductor runs on each board.
RUN = 1000

#: A listing keeps at most this many bytes of postings in memory.
KEPT = 64 << 20


def grown(samples, what):
    """Compares the two largest boards, where the start of the process is negligible."""
    smaller, larger = (cost["microseconds"] for cost in list(samples.values())[-2:])
    note = "; ".join(
        f"{count:,}: {cost['microseconds']:,.1f} µs, {cost['bytes']:,.0f} bytes of memory" for count, cost in samples.items()
    )
    return Figure(larger, smaller, unit=f"µs a {what}", note=note, samples=samples)


def listing(bench, kind, sizes):
    samples = {}
    for count in sizes:
        _, url = bench.half_claimed(kind, count)
        runs = [peak(bench.ours("--board", url, "list", "--format", "table")) for _ in range(bench.pick(5, 3))]
        samples[count] = {
            "microseconds": statistics.median(took for took, _ in runs) / count * 1e6,
            "bytes": max(most for _, most in runs) / count,
        }
    return grown(samples, "job")


def conducting(bench, url, clear, sizes):
    """Runs some of the jobs of a large board.

    The time starts at the first job: the initial read of the board is what the listings measure.
    """
    bench.needs("conduct")
    run = bench.pick(RUN, 200)
    samples = {}
    for count in sizes:
        clear()
        board = url(f"growth-{count}")
        jobs.post(bench, board, count, ["true"])
        costs, most = [], 0
        for _ in range(bench.pick(5, 3)):
            jobs.post(bench, board, run, ["true"])
            cost, peaked = conduct(bench, board, run)
            costs.append(cost)
            most = max(most, peaked)
        samples[count] = {"microseconds": statistics.median(costs), "bytes": most / count}
    return grown(samples, "job run")


def conduct(bench, board, count):
    """Returns the microseconds from job to job and the peak memory."""
    flags = ("conduct", "--allow-any", "--output", "discard", "--log", "json", "-j2", "--max-jobs", str(count))
    _, most, lines = watch(bench.ours("--board", board, *flags))
    events = [json.loads(line) for line in lines]
    starts = [datetime.datetime.fromisoformat(one["time"]) for one in events if one["event"] == "running_start"]
    assert len(starts) == count, f"{len(starts)} jobs instead of {count}"
    return (max(starts) - min(starts)).total_seconds() / (count - 1) * 1e6, most


RIVAL = "a tenth of the jobs"
ASKED = f"{FLAT} x or less"
LARGE = ((1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000))
SMALL = ((1_000, 10_000, 100_000), (300, 3_000))


@row("growth-redis", "list, 1,000,000 jobs, Redis", ASKED, ("most", FLAT), RIVAL)
def growth_redis(bench):
    return listing(bench, "redis", bench.pick(*LARGE))


@row("memory-table", "table of 1,000,000 jobs, Redis", "below 400 MB", ("most", 400))
def memory_table(bench):
    """Measures peak memory. The quick run has fewer jobs and scales the unbounded part up."""
    count = bench.pick(1_000_000, 100_000)
    _, url = bench.half_claimed("redis", count)
    _, most = peak(bench.ours("--board", url, "list", "--format", "table"))
    scaled = KEPT + (most - min(KEPT, count * SIZE)) * (1_000_000 / count)
    return Figure(scaled / 1e6, unit="MB", note="" if count == 1_000_000 else "extrapolated from fewer jobs")


@row("growth-embedded", "list, 1,000,000 jobs, embedded", ASKED, ("most", FLAT), RIVAL)
def growth_embedded(bench):
    return listing(bench, "embedded", bench.pick(*LARGE))


@row("growth-zookeeper", "list, 100,000 jobs, ZooKeeper", ASKED, ("most", FLAT), RIVAL)
def growth_zookeeper(bench):
    return listing(bench, "zookeeper", bench.pick(*SMALL))


@row("growth-conduct-redis", "conduct, 1,000,000 jobs, Redis", ASKED, ("most", FLAT), RIVAL)
def growth_conduct_redis(bench):
    bench.forget("redis")
    return conducting(bench, bench.redis.url, bench.redis.clear, bench.pick(*LARGE))


@row("growth-conduct-embedded", "conduct, 1,000,000 jobs, embedded", ASKED, ("most", FLAT), RIVAL)
def growth_conduct_embedded(bench):
    return conducting(bench, bench.embedded, lambda: None, bench.pick(*LARGE))


@row("growth-conduct-zookeeper", "conduct, 100,000 jobs, ZooKeeper", ASKED, ("most", FLAT), RIVAL)
def growth_conduct_zookeeper(bench):
    return conducting(bench, bench.zookeeper.url, lambda: None, bench.pick(*SMALL))
