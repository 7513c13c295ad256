"""Measures the rows that were asked for, and prints them."""

import argparse
import fnmatch
import json
import os
import signal
import sys
import tempfile

# Each adds its rows, in this order.
import start  # noqa: F401
import bulk  # noqa: F401
import listing  # noqa: F401
import conducting  # noqa: F401
import crowding  # noqa: F401
import remembering  # noqa: F401
import idling  # noqa: F401
import growth  # noqa: F401
import looking  # noqa: F401
import reporting  # noqa: F401
import machine
import table
from bench import ROWS, Bench, NotThere
from processes import Failed


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measures the program against its rivals.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="names of rows, with * and ?; all, if none is given")
    parser.add_argument("--quick", action="store_true", help="smaller boards and fewer rounds: three minutes")
    parser.add_argument("--json", action="store_true", help="print all samples, as JSON")
    parser.add_argument("--list", action="store_true", help="name the rows, and measure nothing")
    args = parser.parse_args()
    for name in args.rows:
        if not fnmatch.filter([row.name for row in ROWS], name):
            parser.error(f"there is no row {name}; --list names them")
    return args


def measure(bench, row):
    """Returns the row as it is printed."""
    facts = {"row": row.name, "what": row.what, "rival": row.rival, "asked": row.asked}
    try:
        figure = row.measure(bench)
    except NotThere as missing:
        return facts | {"result": "not there", "note": f"no command {missing}"}
    except Failed as failed:
        return facts | {"result": "failed", "note": str(failed)}
    result = "met" if row.is_met(figure) else "missed"
    return facts | vars(figure) | {"ratio": figure.ratio, "result": result, "load": round(os.getloadavg()[0], 2)}


def run(args, program, folder):
    wanted = [row for row in ROWS if not args.rows or any(fnmatch.fnmatch(row.name, name) for name in args.rows)]
    bench = Bench(program, folder, args.quick)
    state = machine.state(program)
    measured = []
    if not args.json:
        table.head(state)
    try:
        for row in wanted:
            if sys.stderr.isatty():
                print(f"{row.name} …", end="\r", file=sys.stderr, flush=True)
            measured.append(measure(bench, row))
            if not args.json:
                table.line(measured[-1])
    finally:
        bench.stop()
    if args.json:
        print(json.dumps({"machine": state, "quick": args.quick, "rows": measured}, indent=1))
    return 1 if any(row["result"] == "failed" for row in measured) else 0


def main():
    args = arguments()
    if args.list:
        for row in ROWS:
            print(f"{row.name:25} {row.what}" + (f", against {row.rival}" if row.rival else ""))
        return 0
    program = os.environ.get("JOBBOARD_BENCH")
    if not program:
        sys.exit("start this by scripts/bench")
    # Whatever ends us, servers and folders go first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="jobboard-bench-") as folder:
        try:
            return run(args, program, folder)
        except KeyboardInterrupt:
            return 130


sys.exit(main())
