"""The cost of the history and the time to read it."""

import uuid

import jobs
from bench import Figure, rates, row, times
from conducting import FLAGS
from processes import seconds

#: The default size of the history.
HISTORY = 10_000

CONSUME = ("consume", "-q", "--force", "--yes", "--name", "job-*")

WITHOUT = "the same without history"


def configured(bench, url, history):
    """Returns the arguments that select a board with this history size."""
    path = bench.path(f"history-{history}.toml")
    with open(path, "w") as file:
        file.write(f'[board.bench]\nurl = "{url}"\nhistory = {history}\n')
    return "--config", path, "--board", "bench"


def with_and_without(bench, url, count, rounds, prepare, command):
    """Measures a command on a board with a full history and on one without history."""

    def run(history):
        board = configured(bench, url, history)
        prepare(board)
        return seconds(bench.ours(*board, *command))

    # A full history must drop an entry for each new one.
    jobs.post(bench, url, HISTORY)
    bench.output("--board", url, *CONSUME)
    return rates(times(rounds, lambda: run(HISTORY), lambda: run(0)), count, count)


def conducted(bench, url):
    count = bench.pick(5_000, 2_000)
    prepare = lambda _: jobs.post(bench, url, count, ["true"])
    command = (*FLAGS, "-j2", "--drain")
    return with_and_without(bench, url, count, bench.pick(15, 7), prepare, command)


def consumed(bench, url):
    count = bench.pick(20_000, 10_000)
    prepare = lambda _: jobs.post(bench, url, count)
    return with_and_without(bench, url, count, bench.pick(9, 5), prepare, CONSUME)


def read(bench, url):
    bench.needs("conduct")
    count = HISTORY + 1_000
    jobs.post(bench, url, count)
    bench.output("--board", url, *CONSUME)
    listing = bench.ours("--board", url, "list", "--history")
    samples = [seconds(listing) for _ in range(bench.pick(15, 7))]
    middle = sorted(samples)[len(samples) // 2]
    return Figure(middle * 1000, unit="ms", samples={"ours": samples})


def rows_of(kind, title, url):
    asked = ("0.95 x or more", ("least", 0.95), WITHOUT)
    row(f"past-conduct-{kind}", f"conduct -j2 of true, {title}, with history", *asked)(
        lambda bench: conducted(bench, url(bench))
    )
    row(f"past-consume-{kind}", f"consume all jobs, {title}, with history", *asked)(
        lambda bench: consumed(bench, url(bench))
    )
    row(f"past-read-{kind}", f"list --history, {HISTORY:,} jobs, {title}", "100 ms or less", ("most", 100))(
        lambda bench: read(bench, url(bench))
    )


rows_of("redis", "Redis", lambda bench: bench.redis.url(uuid.uuid4().hex))
rows_of("embedded", "embedded", lambda bench: bench.embedded(uuid.uuid4().hex))
rows_of("zookeeper", "ZooKeeper", lambda bench: bench.zookeeper.url(uuid.uuid4().hex))
