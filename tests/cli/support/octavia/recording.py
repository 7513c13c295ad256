"""Writes down what oslo.config reads of the configurations and the spellings among the fixtures, beside each."""

import json
import os
import tempfile

import probing


def record(folder):
    folder = os.path.abspath(folder)
    cases = loaded(f"{folder}/cases.json")
    here = os.getcwd()
    os.chdir(f"{folder}/conf")
    for case in cases:
        case["reading"] = reading(case["args"], case["environ"])
    os.chdir(here)
    written(f"{folder}/cases.json", cases)
    spellings = loaded(f"{folder}/spellings.json")
    for spelling in spellings:
        with tempfile.NamedTemporaryFile(suffix=".conf") as file:
            file.write(spelling["text"].encode())
            file.flush()
            read = reading(["--config-file", file.name], {"HOME": "/nowhere"})
            read.pop("board", None)
            spelling["reading"] = read
    written(f"{folder}/spellings.json", spellings)


def reading(args, environ):
    """Returns what is not a default, or cannot be read, with the board; of an error only its class."""
    try:
        read = probing.probe(args, environ)
    except Exception as error:
        return {"error": type(error).__name__}
    options = {
        f"{group}.{name}": classed(said) if "error" in said else said["value"]
        for group in ("task_flow", "database")
        for name, said in read[group].items()
        if said.get("from") not in ("opt_default", "set_default")
    }
    board = classed(read["board"])
    if "client" in board:
        board["client"] = classed(board["client"])
    return {"options": options, "board": board}


def classed(said):
    return {"error": said["error"].split(":")[0]} if "error" in said else said


def loaded(path):
    with open(path) as file:
        return json.load(file)


def written(path, entries):
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
