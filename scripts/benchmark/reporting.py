"""The cost of a report on a large board and the size of its page."""

import os

from bench import Figure, row
from processes import peak


@row("report", "report, 1,000,000 jobs, embedded", "below 60 s, 100 MB, 500 kB", ("most", 60))
def report(bench):
    bench.needs("report")
    count = bench.pick(1_000_000, 100_000)
    _, url = bench.half_claimed("embedded", count)
    page = bench.path("report.html")
    took, most = peak(bench.ours("--board", url, "report", page))
    size = os.path.getsize(page)
    return Figure(
        took,
        unit="s",
        note=f"{most / 1e6:,.0f} MB of memory; a page of {size / 1e3:,.0f} kB",
        is_all_else_met=most < 100e6 and size < 500e3,
        samples={"took": [took], "bytes": [most], "page": [size]},
    )
