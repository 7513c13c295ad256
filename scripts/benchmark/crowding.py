"""Many conductors on one server: their total rate and the server's cost per job."""

import statistics
import time

import jobs
from bench import Figure, rates, row, times
from conducting import FLAGS, XARGS
from processes import all_at_once, seconds, worked

#: Numbers of conductors and boards.
CROWDS = ((1, 1), (4, 4), (16, 16), (64, 16))

#: The calls that conductors send continuously. Redis also counts the commands inside scripts and transactions.
ASKED = ("evalsha", "exec")


class Server:
    """The server's work per job since this object was created, in microseconds."""

    def __init__(self, client):
        self.client = client
        client.config_resetstat()
        self.before = self.worked()

    def worked(self):
        usage = self.client.info("cpu")
        return usage["used_cpu_user"] + usage["used_cpu_sys"]

    def since(self, count):
        stats = self.client.info("commandstats")
        taken = {name: stats.get(f"cmdstat_{name}", {"usec": 0, "calls": 0}) for name in ASKED}
        return {
            "processor": (self.worked() - self.before) / count * 1e6,
            "commands": sum(one["usec"] for one in stats.values()) / count,
            **{name: (one["usec"] / count, one["calls"] / count) for name, one in taken.items()},
        }


def crowd(bench, conductors, boards, count):
    """Lets conductors drain their boards; returns the jobs per second and the costs."""
    urls = [bench.redis.url(f"board-{number}") for number in range(boards)]
    for url in urls:
        jobs.post(bench, url, count // boards, ["true"])
    server, start = Server(bench.redis.client), time.perf_counter()
    commands = [bench.ours("--board", urls[number % boards], *FLAGS, "-j1", "--drain") for number in range(conductors)]
    all_at_once(commands, bench.path("conductors.log"))
    return count / (time.perf_counter() - start), server.since(count)


@row("scale-redis", "server time, 64 conductors on 16 boards, Redis", "2 x or less", ("most", 2), "one conductor")
def scale_redis(bench):
    """Measures server time per job. Redis runs commands on one processor, so this limits the jobs per second."""
    bench.needs("conduct")
    bench.forget("redis")
    count = bench.pick(16_000, 1_600)
    samples, costs, notes = {}, {}, []
    for conductors, boards in CROWDS:
        runs = [crowd(bench, conductors, boards, count) for _ in range(bench.pick(3, 1))]
        rate = statistics.median(rate for rate, _ in runs)
        costs[conductors] = statistics.median(cost["processor"] for _, cost in runs)
        (scripts, calls), (looks, _) = runs[-1][1]["evalsha"], runs[-1][1]["exec"]
        notes.append(
            f"{conductors}: {rate:,.0f} jobs /s, {costs[conductors]:,.0f} µs server time per job, "
            f"{scripts:,.0f} µs in {calls:.1f} scripts, {looks:,.0f} µs in reads"
        )
        samples[conductors] = runs
    return Figure(costs[64], costs[1], unit="µs a job", note="; ".join(notes), samples=samples)


@row("scale-rate-redis", "64 conductors on 16 boards, Redis", "0.5 x or more", ("least", 0.5), XARGS)
def scale_rate_redis(bench):
    bench.needs("conduct")
    bench.forget("redis")
    count, lines = bench.pick(6_400, 3_200), bench.path("lines")
    with open(lines, "w") as file:
        file.writelines(f"{number}\n" for number in range(count))
    ours, theirs = (lambda: count / crowd(bench, 64, 16, count)[0]), (lambda: seconds(XARGS.split(), stdin=lines))
    return rates(times(bench.pick(3, 1), ours, theirs), count, count)


def served(bench, url, look):
    """Returns the server's cost per job of `conduct -j2`. `look(count)` starts a measurement and returns its end."""
    bench.needs("conduct")
    count, costs = bench.pick(5_000, 2_000), []
    # The first round only warms up the JIT compiler of a Java server.
    for _ in range(1 + bench.pick(5, 2)):
        jobs.post(bench, url, count, ["true"])
        cost = look(count)
        seconds(bench.ours("--board", url, *FLAGS, "-j2", "--drain"))
        costs.append(cost())
    return Figure(statistics.median(costs[1:]), unit="µs a job", samples={"ours": costs[1:]})


@row("server-redis", "server time, conduct -j2 of true, Redis", "below 200 µs", ("most", 200))
def server_redis(bench):
    """Sums `INFO commandstats`, which counts a command inside a script again."""

    def look(count):
        server = Server(bench.redis.client)
        return lambda: server.since(count)["commands"]

    return served(bench, bench.redis.url("served"), look)


@row("server-zookeeper", "server time, conduct -j2 of true, ZooKeeper", "below 400 µs", ("most", 400))
def server_zookeeper(bench):
    """Measures the processor time of the whole server."""
    pid = bench.zookeeper.process.pid

    def look(count):
        before = worked(pid)
        return lambda: (worked(pid) - before) / count * 1e6

    return served(bench, bench.zookeeper.url("served"), look)
