"""Runs a real Octavia for the tests: one JSON request per line in, one JSON answer per line out, and events.

    python -I -B tests/cli/support/octavia [SETTINGS]

Use the Python of target/octavia-venv, which scripts/octavia creates. SETTINGS is a JSON object:

    conf          path of octavia.conf; the CA, the log and the no-op drivers' table of ports are stored beside it
    board         {"driver": "redis" | "zookeeper", "hosts": [..], "port": N, "namespace": ..}
    database      SQLAlchemy URL of Octavia's own tables
    persistence   SQLAlchemy URL of TaskFlow's tables [default: `database`; with SQLite, taskflow.db beside it]
    options       {"group": {"option": "value"}}, in addition to the others

With `board`, the file `conf` is written first. Without `board`, an existing file is read, so further processes need only
`conf`. Without SETTINGS, only `probe` and `record` work. A request is {"do": NAME, ..}:

    prepare  [migrate]           creates all tables of Octavia and TaskFlow. With `migrate`, Octavia's migrations create
                                 its own, and TaskFlow's must be in another database
    rows     [name topology tls] creates a load balancer with one of everything; answers its ids
    spare                        creates an amphora without a load balancer; answers its ids
    post     flow [ids]          posts a flow (see `flows`) on these rows, or on new ones, and does not wait for its
                                 end; answers flow, factory, job, name, book, flow_uuid and the ids
    posted                       answers the same for every flow posted here, with details and the flow's meta
    flows                        lists the flows that `post` accepts
    capture  into                posts each flow to a board on ZooKeeper and records what is stored (fixtures)
    status   id [table]          answers provisioning_status of a load balancer, or of a row of another table
    sql      words               executes a statement in Octavia's own database
    hold     at until            a call of a no-op driver, such as compute.build, blocks until the file `until` exists
    fail     at [words kind times]   such a call raises an exception, always or `times` times; `words` is its text, or an
                                 object with its arguments, and `kind` is a class with its module
    outgrow  factory             changes that factory's arguments, as an upgrade does: its jobs will be trashed
    mend                         ends the effects of `hold`, `fail` and `outgrow`
    conduct  [name]              starts a conductor, which runs until this process ends; answers its name
    calls                        lists the calls that `hold` and `fail` accept
    probe    args [environ]      answers what oslo.config reads when started with these arguments: for each option
                                 `value` or `error`, `from` and `where`; how TaskFlow is configured for the `board`;
                                 and the `client` and the address of its connection
    record   folder              writes these answers beside each fixture in the folder

An answer is {"answer": ..} or {"error": "CLASS: words"}. Events come at any time: {"event": KIND, "job": UUID, ..}

    claimed, consumed, abandoned, trashed    what this conductor did on the board: `name`, `owner`
    flow      the `state` of a flow changed: RUNNING, SUCCESS, REVERTED, RESUMING, SUSPENDED, FAILURE
    atom      a task or a retry failed, is reverting, was reverted, or retries: `atom`, `state`, `failure`
    standing  a call is blocked by `hold`: `at`
    stopped   the conductor ended unexpectedly: `error`, and no `job`

Octavia's conductor runs one job at a time. A job whose flow fails is consumed as well, after the flow was reverted.

When stdin closes, the process ends at once, as if it had been killed, and releases nothing.
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
