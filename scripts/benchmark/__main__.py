"""Measures the requested rows and prints them."""

import argparse
import fnmatch
import json
import os
import signal
import statistics
import sys
import tempfile

# Each module registers its rows, in this order.
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

#: The rows of the hot paths: the default for --against.
GATE = ("start", "post-redis", "list-cpu-redis", "conduct-cpu-*", "scale-rate-redis", "server-*")

#: Ratios within this distance of 1 count as unchanged.
NOISE = 0.05


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Compare jobboard with its rivals.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="row names, with * and ? [default: all]")
    parser.add_argument("--quick", action="store_true", help="use smaller boards and fewer rounds: three minutes")
    parser.add_argument("--against", metavar="BINARY", help="compare with another build; exit with 1 if a row is slower")
    parser.add_argument("--pairs", type=int, default=7, help="with --against: measurements per build [default: 7]")
    parser.add_argument("--page", action="store_true", help="update the table in docs/benchmarks.md")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON")
    parser.add_argument("--list", action="store_true", help="list the rows and exit")
    args = parser.parse_args()
    for name in args.rows:
        if not fnmatch.filter([row.name for row in ROWS], name):
            parser.error(f"no row matches {name}; --list prints the rows")
    if args.page and (args.rows or args.quick or args.against):
        parser.error("--page measures all rows in full: omit ROW, --quick and --against")
    if args.against and not os.access(args.against, os.X_OK):
        parser.error(f"{args.against} is not an executable file")
    if args.against and not args.rows:
        args.rows = GATE
    return args


def measure(bench, row):
    """Returns the row's facts for printing."""
    facts = {"row": row.name, "what": row.what, "rival": row.rival, "asked": row.asked}
    try:
        figure = row.measure(bench)
    except NotThere as missing:
        return facts | {"result": "not there", "note": f"the program has no command {missing}"}
    except Failed as failed:
        return facts | {"result": "failed", "note": str(failed)}
    result = "met" if row.is_met(figure) else "missed"
    return facts | vars(figure) | {"ratio": figure.ratio, "result": result, "load": round(os.getloadavg()[0], 2)}


def compare(bench, row, other, pairs):
    """Measures the row with both programs in alternation and compares each pair."""
    facts = {"row": row.name, "what": row.what, "rival": None, "asked": ""}
    ours, theirs, program = [], [], bench.program
    try:
        for pair in range(pairs):
            both = [(program, ours), (other, theirs)]
            for bench.program, figures in both if pair % 2 else reversed(both):
                figures.append(row.measure(bench))
    except (NotThere, Failed) as problem:
        return facts | {"result": "failed", "note": str(problem)}
    finally:
        bench.program = program
    ratios = [mine.ours / its.ours if its.ours else 1.0 for mine, its in zip(ours, theirs)]
    low, middle, high = statistics.quantiles(ratios, n=4) if pairs > 1 else ratios * 3
    worse, better = (low, high) if row.limit[0] == "most" else (1 / high, 1 / low)
    result = "slower" if worse > 1 + NOISE else "faster" if better < 1 - NOISE else "unchanged"
    facts |= {"ours": statistics.median(one.ours for one in ours), "unit": ours[0].unit}
    facts |= {"theirs": statistics.median(one.ours for one in theirs), "ratio": middle, "ratios": ratios}
    note = f"middle half of the pairs: {low:.2f} to {high:.2f} x"
    if row.rival:
        beside = (f"{statistics.median(one.ratio for one in some):.2f} x" for some in (ours, theirs))
        note += f"; {' and '.join(beside)} of {row.rival}, target {row.asked}"
    return facts | {"result": result, "note": note}


def run(args, program, folder):
    wanted = [row for row in ROWS if not args.rows or any(fnmatch.fnmatch(row.name, name) for name in args.rows)]
    # Short measurements alternate more often.
    bench = Bench(program, folder, args.quick or bool(args.against))
    state = machine.state(program)
    measured = []
    if not args.json:
        table.head(state)
    try:
        for row in wanted:
            if sys.stderr.isatty():
                print(f"{row.name} …", end="\r", file=sys.stderr, flush=True)
            other = args.against and os.path.realpath(args.against)
            measured.append(compare(bench, row, other, args.pairs) if other else measure(bench, row))
            if not args.json:
                table.line(measured[-1])
    finally:
        bench.stop()
    if args.json:
        print(json.dumps({"machine": state, "quick": args.quick, "rows": measured}, indent=1))
    if args.page:
        table.page("docs/benchmarks.md", state, measured)
    return 1 if any(row["result"] in ("failed", "slower") for row in measured) else 0


def main():
    args = arguments()
    if args.list:
        for row in ROWS:
            print(f"{row.name:25} {row.what}" + (f", against {row.rival}" if row.rival else ""))
        return 0
    program = os.environ.get("JOBBOARD_BENCH")
    if not program:
        sys.exit("run scripts/bench instead")
    # Stop the servers and remove the directory before exiting.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="jobboard-bench-") as folder:
        try:
            return run(args, program, folder)
        except KeyboardInterrupt:
            return 130


sys.exit(main())
