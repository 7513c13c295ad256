"""How what a listing costs grows with the board."""

import statistics

from bench import Figure, row
from processes import peak

#: A board ten times as large may cost this many times more for each job, and no more.
FLAT = 1.5


def growth(bench, kind, sizes):
    """Compares the largest board with the one before it; both are large enough for starts not to count."""
    samples = {}
    for count in sizes:
        _, url = bench.half_claimed(kind, count)
        runs = [peak(bench.ours("--board", url, "list", "--format", "table")) for _ in range(bench.pick(5, 3))]
        samples[count] = {
            "microseconds": statistics.median(took for took, _ in runs) / count * 1e6,
            "bytes": max(most for _, most in runs) / count,
        }
    smaller, larger = (samples[count]["microseconds"] for count in sizes[-2:])
    note = "; ".join(
        f"{count:,}: {cost['microseconds']:.1f} µs, {cost['bytes']:,.0f} bytes of memory" for count, cost in samples.items()
    )
    return Figure(larger, smaller, unit="µs a job", note=note, samples=samples)


RIVAL = "a tenth of them"
ASKED = f"{FLAT} x or less"


@row("growth-redis", "list, 1,000,000 jobs, Redis", ASKED, ("most", FLAT), RIVAL)
def growth_redis(bench):
    return growth(bench, "redis", bench.pick((1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000)))


@row("memory-table", "table of 1,000,000 jobs, Redis", "below 400 MB", ("most", 400))
def memory_table(bench):
    """In the quick run there are fewer jobs, and what they take is scaled up."""
    count = bench.pick(1_000_000, 100_000)
    _, url = bench.half_claimed("redis", count)
    _, most = peak(bench.ours("--board", url, "list", "--format", "table"))
    scaled = most * (1_000_000 / count)
    return Figure(scaled / 1e6, unit="MB", note="" if count == 1_000_000 else "from fewer jobs")


@row("growth-embedded", "list, 1,000,000 jobs, embedded", ASKED, ("most", FLAT), RIVAL)
def growth_embedded(bench):
    return growth(bench, "embedded", bench.pick((1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000)))


@row("growth-zookeeper", "list, 100,000 jobs, ZooKeeper", ASKED, ("most", FLAT), RIVAL)
def growth_zookeeper(bench):
    return growth(bench, "zookeeper", bench.pick((1_000, 10_000, 100_000), (300, 3_000)))
