"""The environment of every row: the program, servers that start on demand, and timing."""

import json
import os
import statistics
import sys
import uuid
from dataclasses import dataclass, field

import jobs
import processes
from servers import Redis, ZooKeeper


@dataclass
class Row:
    """A measurement and its target."""

    name: str
    what: str
    #: The program to compare with; None if the value itself is judged.
    rival: str | None
    asked: str
    #: The kind of limit ("most" or "least") and the limit.
    limit: tuple[str, float]
    measure: object

    def is_met(self, figure):
        kind, limit = self.limit
        value = figure.ours if self.rival is None else figure.ratio
        return figure.is_all_else_met and (value <= limit if kind == "most" else value >= limit)


@dataclass
class Figure:
    """A result: the medians and their samples."""

    ours: float
    theirs: float | None = None
    unit: str = "ms"
    note: str = ""
    #: Whether the values in the note meet their targets as well.
    is_all_else_met: bool = True
    samples: dict = field(default_factory=dict)

    @property
    def ratio(self):
        return self.ours / self.theirs if self.theirs else None


class NotThere(Exception):
    """The program lacks the command to measure."""


ROWS = []


def row(name, what, asked, limit, rival=None):
    """Registers the decorated function as a row."""

    def add(measure):
        ROWS.append(Row(name, what, rival, asked, limit, measure))
        return measure

    return add


class Bench:
    def __init__(self, program, folder, is_quick):
        self.program, self.folder, self.is_quick = program, folder, is_quick
        self.servers, self.boards = {}, {}
        # Ignore the user's configuration and state.
        home = self.path("home")
        os.makedirs(home)
        for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            os.environ[name] = home
        for name in [name for name in os.environ if name.startswith("JOBBOARD_")]:
            del os.environ[name]

    def pick(self, full, quick):
        return quick if self.is_quick else full

    def path(self, name):
        return os.path.join(self.folder, name)

    def ours(self, *words):
        return [self.program, *words]

    def output(self, *words):
        return processes.output(self.ours(*words))

    def needs(self, command):
        try:
            self.output(command, "--help")
        except processes.Failed:
            raise NotThere(command) from None

    def peer(self, conf, verb, count):
        """Returns the seconds that TaskFlow needs."""
        here = os.path.dirname(os.path.abspath(__file__))
        script = [sys.executable, "-B", os.path.join(here, "peer.py")]
        return float(processes.output([*script, json.dumps(conf), verb, str(count)]))

    def server(self, kind):
        if kind not in self.servers:
            self.servers[kind] = kind(self.path(kind.__name__.lower()))
        return self.servers[kind]

    @property
    def redis(self):
        return self.server(Redis)

    @property
    def zookeeper(self):
        return self.server(ZooKeeper)

    def embedded(self, name):
        return f"sqlite:{self.path(name)}.db"

    def half_claimed(self, kind, count):
        """Returns the name and URL of a board with `count` jobs, half of them claimed."""
        if (kind, count) not in self.boards:
            self.forget(kind)
            # A new name: cleared boards may leave traces on the server.
            name = f"{kind}-{count}-{uuid.uuid4().hex}"
            self.boards[kind, count] = name, getattr(self, f"fill_{kind}")(name, count)
        return self.boards[kind, count]

    def forget(self, kind):
        """Drops the boards of one kind to free memory for the next."""
        self.boards = {key: board for key, board in self.boards.items() if key[0] != kind}
        if kind == "redis":
            self.redis.clear()

    def fill_redis(self, name, count):
        jobs.post(self, self.redis.url(name), count)
        jobs.claim_half_on_redis(self, self.redis, name)
        return self.redis.url(name)

    def fill_zookeeper(self, name, count):
        jobs.post(self, self.zookeeper.url(name), count)
        jobs.claim_half_on_zookeeper(self.zookeeper, name)
        return self.zookeeper.url(name)

    def fill_embedded(self, name, count):
        url = self.embedded(name)
        jobs.post(self, url, count)
        jobs.claim_half_on_embedded(url.removeprefix("sqlite:"))
        return url

    def stop(self):
        for server in self.servers.values():
            server.stop()


def times(rounds, ours, theirs):
    """Measures two functions in alternation, so that other load affects both."""
    taken = {"ours": [], "theirs": []}
    for _ in range(rounds):
        taken["ours"].append(ours())
        taken["theirs"].append(theirs())
    return taken


def durations(taken, unit="ms"):
    """Returns the median durations."""
    factor = {"ms": 1000, "s": 1}[unit]
    middle = {who: statistics.median(some) * factor for who, some in taken.items()}
    return Figure(**middle, unit=unit, samples=taken)


def rates(taken, ours, theirs):
    """Returns jobs per second from durations and job counts."""
    return Figure(
        ours / statistics.median(taken["ours"]),
        theirs / statistics.median(taken["theirs"]),
        unit="/s",
        samples=taken,
    )
