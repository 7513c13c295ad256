"""The table of results, on the terminal and in docs/benchmarks.md."""

COLUMNS = (("row", 24), ("what", 34), ("ours", 14), ("theirs", 14), ("ratio", 8), ("target", 14), ("result", 9))


def head(state):
    print(f"{state['processor']}, {state['cores']} cores, load {state['load']}, Linux {state['kernel']}")
    print("; ".join(state["versions"]))
    print()
    write(title for title, _ in COLUMNS)


def line(row):
    def value(who):
        return "" if row.get(who) is None else f"{number(row[who])} {row['unit']}"

    ratio = row.get("ratio")
    write(
        (
            row["row"],
            row["what"],
            value("ours"),
            value("theirs"),
            "" if ratio is None else f"{number(ratio)} x",
            row["asked"],
            row["result"],
        )
    )
    for note in ([f"against {row['rival']}"] if row["rival"] else []) + ([row["note"]] if row.get("note") else []):
        print(f"{'':25}{note}", flush=True)


def page(path, state, rows):
    """Replaces the text between the two markers of the page: the machine, the versions and the table.

    scripts/release --check reads the name, ratio and target of each row from this table.
    """
    with open(path) as file:
        before, _, rest = file.read().partition("<!-- figures -->\n")
    _, end, after = rest.partition("<!-- end of figures -->\n")
    machine = f"Measured on {state['processor']}, {state['cores']} cores, load {state['load']}, Linux {state['kernel']}"
    cells = [["row", "what", "ours", "theirs", "ratio", "target", "result", "note"], ["---"] * 8]
    for row in rows:
        what = row["what"] + (f", against {row['rival']}" if row["rival"] else "")
        values = [f"{number(row[who])} {row['unit']}" if row.get(who) is not None else "" for who in ("ours", "theirs")]
        ratio = f"{number(row['ratio'])} x" if row.get("ratio") else ""
        cells.append([row["row"], what, *values, ratio, row["asked"], row["result"], row.get("note") or ""])
    lines = "".join(f"| {' | '.join(row)} |\n" for row in cells)
    with open(path, "w") as file:
        file.write(f"{before}<!-- figures -->\n{machine}, with {'; '.join(state['versions'])}.\n\n{lines}{end}{after}")


def write(cells):
    cells = (f"{cell:{width}}" for cell, (_, width) in zip(cells, COLUMNS))
    print(" ".join(cells).rstrip(), flush=True)


def number(value):
    """Formats a number with three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
