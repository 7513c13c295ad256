"""The table that people read."""

COLUMNS = (("row", 24), ("what", 34), ("ours", 14), ("theirs", 14), ("ratio", 8), ("asked", 14), ("", 9))


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
    """Writes the rows into the table of a page, in the place of those that it has."""
    with open(path) as file:
        before, _, rest = file.read().partition("<!-- figures -->\n")
    _, end, after = rest.partition("<!-- end of figures -->\n")
    machine = f"{state['processor']}, {state['cores']} cores, load {state['load']}, Linux {state['kernel']}"
    cells = [["row", "what", "ours", "theirs", "ratio", "asked", "", "note"], ["---"] * 8]
    for row in rows:
        what = row["what"] + (f", against {row['rival']}" if row["rival"] else "")
        values = [f"{number(row[who])} {row['unit']}" if row.get(who) is not None else "" for who in ("ours", "theirs")]
        ratio = f"{number(row['ratio'])} x" if row.get("ratio") else ""
        cells.append([row["row"], what, *values, ratio, row["asked"], row["result"], row.get("note") or ""])
    lines = "".join(f"| {' | '.join(row)} |\n" for row in cells)
    with open(path, "w") as file:
        file.write(f"{before}<!-- figures -->\n{machine}; {'; '.join(state['versions'])}.\n\n{lines}{end}{after}")


def write(cells):
    cells = (f"{cell:{width}}" for cell, (_, width) in zip(cells, COLUMNS))
    print(" ".join(cells).rstrip(), flush=True)


def number(value):
    """Words a number with three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
