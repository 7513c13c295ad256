"""What every row is given: the program, servers that start when they are asked for, and a stopwatch."""

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
    """What is measured, and what is asked for."""

    name: str
    what: str
    #: What the figure is a ratio of, or None if it is judged by itself.
    rival: str | None
    asked: str
    #: "most" or "least", and the number.
    limit: tuple[str, float]
    measure: object

    def is_met(self, figure):
        kind, limit = self.limit
        value = figure.ours if self.rival is None else figure.ratio
        return figure.is_all_else_met and (value <= limit if kind == "most" else value >= limit)


@dataclass
class Figure:
    """What was measured: medians, and all of which they are the medians."""

    ours: float
    theirs: float | None = None
    unit: str = "ms"
    note: str = ""
    #: Whether what the note says is as it was asked for as well.
    is_all_else_met: bool = True
    samples: dict = field(default_factory=dict)

    @property
    def ratio(self):
        return self.ours / self.theirs if self.theirs else None


class NotThere(Exception):
    """The program does not have what is to be measured."""


ROWS = []


def row(name, what, asked, limit, rival=None):
    """Makes a row of what follows."""

    def add(measure):
        ROWS.append(Row(name, what, rival, asked, limit, measure))
        return measure

    return add


class Bench:
    def __init__(self, program, folder, is_quick):
        self.program, self.folder, self.is_quick = program, folder, is_quick
        self.servers, self.boards = {}, {}
        # No configuration and no state but what is in our folder.
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
        """Makes sure that the program has a command."""
        try:
            self.output(command, "--help")
        except processes.Failed:
            raise NotThere(command) from None

    def peer(self, conf, verb, count):
        """Returns how many seconds TaskFlow takes."""
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
        """Returns the name of a board with as many jobs, of which half are claimed."""
        if (kind, count) not in self.boards:
            self.forget(kind)
            # What a server has forgotten is not always gone.
            name = f"{kind}-{count}-{uuid.uuid4().hex}"
            self.boards[kind, count] = name, getattr(self, f"fill_{kind}")(name, count)
        return self.boards[kind, count]

    def forget(self, kind):
        """Forgets the boards of one kind, so that there is room for the next."""
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
    """Measures two things by turns, and returns how long each took each time.

    Whatever else the machine does meanwhile, it does to both.
    """
    taken = {"ours": [], "theirs": []}
    for _ in range(rounds):
        taken["ours"].append(ours())
        taken["theirs"].append(theirs())
    return taken


def durations(taken, unit="ms"):
    """Makes a figure of durations."""
    factor = {"ms": 1000, "s": 1}[unit]
    middle = {who: statistics.median(some) * factor for who, some in taken.items()}
    return Figure(**middle, unit=unit, samples=taken)


def rates(taken, ours, theirs):
    """Makes a figure of how many jobs a second were done, of as many as each did."""
    return Figure(
        ours / statistics.median(taken["ours"]),
        theirs / statistics.median(taken["theirs"]),
        unit="/s",
        samples=taken,
    )
