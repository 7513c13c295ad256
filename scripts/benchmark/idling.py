"""Idle conductors: their latency and their cost."""

import json
import os
import select
import statistics
import subprocess
import time

from taskflow.jobs import backends

import jobs
from bench import Figure, row
from conducting import FLAGS
from processes import Failed, Process, memory, until, worked

#: Jobs on the board that the idle conductor does not run.
OTHERS = 1_000

#: Limit for the 99th percentile of the latency, in milliseconds.
LATEST = 20

#: Seconds to wait for a job.
PATIENCE = 10


class Idle:
    """An idle conductor; as a context manager it returns the process id."""

    def __init__(self, bench, url):
        bench.needs("conduct")
        jobs.post(bench, url, OTHERS)
        self.process = Process(bench.ours("--board", url, *FLAGS), bench.path("idle.log"))

        def is_registered():
            conductors = json.loads(bench.output("--board", url, "--json", "conductors"))
            return self.process.pid in [conductor["pid"] for conductor in conductors]

        until("the conductor is registered", is_registered)

    def __enter__(self):
        # Its initial work is complete by then.
        time.sleep(2)
        return self.process.pid

    def __exit__(self, *_):
        self.process.stop()


class Bell:
    """A pipe and a command that writes to it."""

    def __init__(self, path):
        if not os.path.exists(path):
            os.mkfifo(path)
        self.command = ["sh", "-c", "echo >$0", path]
        # Open for writing as well: otherwise the pipe ends whenever a command closes it.
        self.pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.poll = select.poll()
        self.poll.register(self.pipe, select.POLLIN)

    def after(self, begin):
        """Returns the milliseconds from the call of `begin` until the bell rings."""
        start = time.perf_counter()
        begin()
        if not self.poll.poll(PATIENCE * 1000):
            raise Failed(f"the command did not start within {PATIENCE} s")
        took = time.perf_counter() - start
        os.read(self.pipe, 100)
        return took * 1000

    def close(self):
        os.close(self.pipe)


def latency(bench, url, post):
    """Posts jobs one by one to an idle conductor; `post` posts one with the given details."""
    bell = Bell(bench.path("bell"))
    children = []
    ours, theirs = [], []
    with Idle(bench, url):
        for _ in range(bench.pick(500, 100)):
            ours.append(bell.after(lambda: post({"command": bell.command})))
            theirs.append(bell.after(lambda: children.append(subprocess.Popen(bell.command))))
            children.pop().wait()
            time.sleep(0.02)
    bell.close()
    late, alone = statistics.quantiles(ours, n=100)[98], statistics.median(theirs)
    note = f"p99 {late:.1f} ms, target {LATEST} ms; the command alone takes {alone:.1f} ms"
    samples = {"ours": ours, "theirs": theirs}
    return Figure(statistics.median(ours), note=note, is_all_else_met=late <= LATEST, samples=samples)


def by_jobboard(bench, url):
    """Posts through one running process, so that its start does not count."""
    bench.needs("conduct")
    command = bench.ours("--board", url, "post", "-q", "--from", "-")
    poster = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def post(details):
        line = json.dumps({"name": "ring", "details": details}) + "\n"
        os.write(poster.stdin.fileno(), line.encode())

    try:
        return latency(bench, url, post)
    finally:
        poster.stdin.close()
        poster.wait()


def by_taskflow(bench, url, conf):
    """Posts through TaskFlow. The result includes its own time, since the job exists before its post returns."""
    bench.needs("conduct")
    board = backends.fetch("bench", conf)
    board.connect()
    posting = []

    def post(details):
        start = time.perf_counter()
        board.post("ring", details=details)
        posting.append((time.perf_counter() - start) * 1000)

    try:
        figure = latency(bench, url, post)
    finally:
        board.close()
    figure.note += f"; TaskFlow's post alone takes {statistics.median(posting):.1f} ms"
    return figure


ASKED = "p50 5 ms"
LIMIT = ("most", 5)


@row("latency-redis", "post to start, Redis", ASKED, LIMIT)
def latency_redis(bench):
    return by_jobboard(bench, bench.redis.url("latency"))


@row("latency-embedded", "post to start, embedded", ASKED, LIMIT)
def latency_embedded(bench):
    return by_jobboard(bench, bench.embedded("latency"))


@row("latency-zookeeper", "post to start, ZooKeeper", ASKED, LIMIT)
def latency_zookeeper(bench):
    return by_jobboard(bench, bench.zookeeper.url("latency"))


@row("latency-redis-peer", "post by TaskFlow to start, Redis", ASKED, LIMIT)
def latency_redis_peer(bench):
    return by_taskflow(bench, bench.redis.url("peer"), bench.redis.taskflow("peer"))


def idle_cpu(bench, url):
    with Idle(bench, url) as pid:
        before, start = worked(pid), time.monotonic()
        time.sleep(bench.pick(30, 5))
        share = (worked(pid) - before) / (time.monotonic() - start)
    return Figure(share * 100, unit="%")


@row("idle-redis", "processor, idle conduct, Redis", "below 0.5 %", ("most", 0.5))
def idle_redis(bench):
    return idle_cpu(bench, bench.redis.url("idle"))


@row("idle-embedded", "processor, idle conduct, embedded", "below 0.5 %", ("most", 0.5))
def idle_embedded(bench):
    return idle_cpu(bench, bench.embedded("idle"))


@row("idle-zookeeper", "processor, idle conduct, ZooKeeper", "below 0.5 %", ("most", 0.5))
def idle_zookeeper(bench):
    return idle_cpu(bench, bench.zookeeper.url("idle"))


@row("memory-conduct", "memory, idle conduct, Redis", "below 20 MB", ("most", 20))
def memory_conduct(bench):
    with Idle(bench, bench.redis.url("idle-memory")) as pid:
        return Figure(memory(pid) / 1e6, unit="MB")
