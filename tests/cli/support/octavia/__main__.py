"""A real Octavia that does what it is told: a JSON request a line, a JSON answer a line, and events in between.

    python -I -B tests/cli/support/octavia [SETTINGS]

Python is that of target/octavia-venv, which scripts/octavia makes. SETTINGS is a JSON object:

    conf          path of the octavia.conf; beside it lie the CA, the log, and the no-op drivers' own table of ports
    board         {"driver": "redis" | "zookeeper", "hosts": [..], "port": N, "namespace": ..}
    database      SQLAlchemy URL of Octavia's own tables
    persistence   the same for TaskFlow's; if not said, that of `database`, and on SQLite taskflow.db beside it
    options       {"group": {"option": "value"}}, on top of the rest

With `board` the file is written first; without, it is read as it is, so that further processes say `conf` alone.
Without SETTINGS only `probe` and `record` can be asked for. Requests are {"do": NAME, ..}, and what they can do:

    prepare  [migrate]           makes all tables, of Octavia and of TaskFlow; those of Octavia by its migrations
                                 if asked to, for which TaskFlow's have to be in another database
    rows     [name topology tls] makes a load balancer with all that there can be on it; answers its ids
    spare                        makes an amphora without a load balancer; answers its ids
    post     flow [ids]          posts a flow (`flows` lists them) on such rows, or on fresh ones, and does not wait
                                 for its end; answers flow, factory, job, name, book, flow_uuid, and the ids
    posted                       answers the same of all that was posted here, with details and the flow's meta
    flows                        lists what can be posted
    capture  into                posts each flow to a board on ZooKeeper, and writes down what is there (fixtures)
    status   id [table]          answers provisioning_status of a load balancer, or of another of Octavia's tables
    sql      words               executes a statement in Octavia's own database
    hold     at until            a call of a no-op driver, such as compute.build, stands still until that file is there
    fail     at [words kind times]   such a call raises an exception, always or so often; `words` are its text, or an
                                 object of what it is made of, and `kind` is a class with its module
    outgrow  factory             that factory takes other arguments, as after an upgrade: its jobs will be trashed
    mend                         ends all of `hold`, `fail`, and `outgrow`
    conduct  [name]              starts a conductor, which runs until this process ends; answers its name
    calls                        lists what `hold` and `fail` can name
    probe    args [environ]      answers what oslo.config reads, started with these arguments: of each option its
                                 `value` or `error`, `from` and `where`; how TaskFlow is told of the `board`; and
                                 with which `client` it would connect to what
    record   folder              writes that down beside each of the fixtures in this folder

An answer is {"answer": ..} or {"error": "CLASS: words"}. Other lines come at any time: {"event": KIND, "job": UUID, ..}

    claimed, consumed, abandoned, trashed    what the conductor here did on the board: `name`, `owner`
    flow      a flow went into a `state`: RUNNING, SUCCESS, REVERTED, RESUMING, SUSPENDED, FAILURE
    atom      a task or a retry failed, is reverting, reverted, or retries: `atom`, `state`, `failure`
    standing  `hold` has come to bear: `at`
    stopped   the conductor ended, though it never should: `error`, and no `job`

A conductor of Octavia's has one job at a time. One whose flow fails is consumed all the same, once it is reverted.

When stdin closes the process ends at once, as if it had been killed: it gives nothing back.
"""

import json
import os
import sys
import threading
import warnings

# Of libraries among themselves.
warnings.simplefilter("ignore")

lines = threading.Lock()


def tell(line):
    with lines:
        print(json.dumps(line, default=str), flush=True)


class Octavia:
    """What can be asked for. Whatever is Octavia's is imported once the configuration is read, as it has to be."""

    def __init__(self, settings):
        self.settings = settings
        if settings:
            import settings as configuration

            configuration.load(settings)
        self.conductor = None

    def prepare(self, migrate=False):
        import tables

        tables.create(migrate)

    def rows(self, **wanted):
        import rows

        return rows.load_balancer(**wanted)

    def spare(self):
        import rows

        return rows.spare()

    def status(self, id, table="load_balancer"):
        import rows

        return rows.status(table, id)

    def sql(self, words):
        import rows

        rows.execute(words)

    def flows(self):
        import postings

        return sorted(postings.FLOWS)

    def post(self, flow, ids=None):
        import postings

        return postings.post(flow, ids)

    def posted(self):
        import postings

        return postings.everything_posted()

    def capture(self, into):
        import capturing

        capturing.capture(into)

    def hold(self, at, until):
        import faults

        faults.hold(at, until)

    def fail(self, at, **how):
        import faults

        faults.fail(at, **how)

    def outgrow(self, factory):
        import faults

        faults.outgrow(factory)

    def mend(self):
        import faults

        faults.mend()

    def calls(self):
        import faults

        return faults.calls()

    def conduct(self, name=None):
        import conducting

        return conducting.start(name, tell)

    def probe(self, args, environ=None):
        import probing

        return probing.probe(args, environ or {})

    def record(self, folder):
        import recording

        recording.record(folder)


def main():
    octavia = Octavia(json.loads(sys.argv[1]) if sys.argv[1:] else None)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            tell({"answer": getattr(octavia, request.pop("do"))(**request)})
        except Exception as error:
            tell({"error": f"{type(error).__name__}: {error}"})
    # Threads wait for jobs, and a conductor for more of them.
    os._exit(0)


main()
