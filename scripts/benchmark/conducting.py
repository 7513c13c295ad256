"""Conductors that run commands."""

import os
import resource
import signal
import statistics
import time

import jobs
from bench import Figure, durations, rates, row, times
from processes import all_at_once, processor, seconds

FLAGS = ("conduct", "-q", "--allow-any", "--output", "discard")


def drain(bench, url, count, conductors=1):
    """Returns the seconds that conductors need to drain a board of jobs that run `true`."""
    jobs.post(bench, url, count, ["true"])
    command = bench.ours("--board", url, *FLAGS, "-j2", "--drain")
    if conductors == 1:
        return seconds(command)
    start = time.perf_counter()
    all_at_once([command] * conductors, bench.path("conductors.log"))
    return time.perf_counter() - start


def against_xargs(bench, url):
    bench.needs("conduct")
    count = bench.pick(5_000, 1_000)
    lines = bench.path("lines")
    with open(lines, "w") as file:
        file.writelines(f"{number}\n" for number in range(count))
    xargs = ["xargs", "-P2", "-n1", "true"]
    taken = times(bench.pick(9, 3), lambda: drain(bench, url, count), lambda: seconds(xargs, stdin=lines))
    return rates(taken, count, count)


def limit(count=1_000):
    """Returns how often per second this machine can run `true` if it does nothing else."""

    def worked():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = worked()
    for _ in range(count):
        os.waitpid(os.posix_spawn("/usr/bin/true", ["true"], os.environ), 0)
    return len(os.sched_getaffinity(0)) * count / (worked() - before)


def against_taskflow(bench, server):
    """Runs the same number of jobs on both sides. The cost of the commands limits the ratio."""
    bench.needs("conduct")
    count = bench.pick(5_000, 1_000)
    ours, theirs = server.url("conduct"), server.taskflow("taskflow")
    taken = times(bench.pick(3, 2), lambda: drain(bench, ours, count), lambda: bench.peer(theirs, "conduct", count))
    figure, most = rates(taken, count, count), limit()
    figure.note = f"upper limit from the commands alone: {most:,.0f} /s, {most / figure.theirs:.1f} x"
    return figure


XARGS = "xargs -P2 -n1 true"


@row("conduct-redis", "conduct -j2 of true, Redis", "1.2 x or more", ("least", 1.2), XARGS)
def conduct_redis(bench):
    return against_xargs(bench, bench.redis.url("conduct"))


@row("conduct-embedded", "conduct -j2 of true, embedded", "1.2 x or more", ("least", 1.2), XARGS)
def conduct_embedded(bench):
    return against_xargs(bench, bench.embedded("conduct"))


@row("conduct-zookeeper", "conduct -j2 of true, ZooKeeper", "0.8 x or more", ("least", 0.8), XARGS)
def conduct_zookeeper(bench):
    return against_xargs(bench, bench.zookeeper.url("conduct"))


@row("conduct-taskflow", "conduct -j2 of true, Redis", "20 x or more", ("least", 20), "TaskFlow's conductor")
def conduct_taskflow(bench):
    return against_taskflow(bench, bench.redis)


def sleeping(bench, runner=None):
    """Returns the processor time per job of `sleep 0.05`, in seconds: the runner and its commands."""
    count, url = bench.pick(400, 100), bench.redis.url("sleeping")
    if runner is None:
        bench.needs("conduct")
        jobs.post(bench, url, count, ["sleep", "0.05"])
        runner = bench.ours("--board", url, *FLAGS, "-j4", "--drain")
    lines = bench.path("lines")
    with open(lines, "w") as file:
        file.writelines("0.05\n" * count)
    return processor(runner, lines) / count


@row("conduct-cpu-redis", "processor, conduct -j4 of sleep 0.05", "2 x or less", ("most", 2), "xargs -P4 -n1 sleep")
def conduct_cpu_redis(bench):
    xargs = ["xargs", "-P4", "-n1", "sleep"]
    return durations(times(bench.pick(7, 3), lambda: sleeping(bench), lambda: sleeping(bench, xargs)))


@row("conduct-cpu-crowded", "processor, conduct, 2,000 other processes", "1.3 x or less", ("most", 1.3), "no other processes")
def conduct_cpu_crowded(bench):
    def crowded():
        pids = [os.posix_spawnp("sleep", ["sleep", "900"], os.environ) for _ in range(2_000)]
        try:
            return sleeping(bench)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    return durations(times(bench.pick(7, 3), crowded, lambda: sleeping(bench)))


@row("crowd-redis", "8 conductors on one board, Redis", "0.9 x or more", ("least", 0.9), "one conductor")
def crowd_redis(bench):
    bench.needs("conduct")
    count = bench.pick(10_000, 1_000)
    url = bench.redis.url("crowd")
    taken = times(bench.pick(5, 3), lambda: drain(bench, url, count, 8), lambda: drain(bench, url, count))
    return rates(taken, count, count)


@row("claims-redis", "conduct among 100,000 other jobs, Redis", "1.2 x or less", ("most", 1.2), "no other jobs")
def claims_redis(bench):
    """Checks that the cost of a claim does not grow with the board. The other jobs have no command and stay."""
    bench.needs("conduct")
    count = bench.pick(5_000, 1_000)
    crowded, alone = bench.redis.url("crowded"), bench.redis.url("alone")
    others = bench.pick(100_000, 5_000)
    jobs.post(bench, crowded, others)
    command = (*FLAGS, "-j2", "--max-jobs", str(count))

    def run(url):
        jobs.post(bench, url, count, ["true"])
        return seconds(bench.ours("--board", url, *command))

    taken = times(bench.pick(5, 3), lambda: run(crowded), lambda: run(alone))
    middle = {who: statistics.median(some) / count * 1000 for who, some in taken.items()}
    return Figure(**middle, unit="ms a job", samples=taken, note="includes the initial read of the board")
