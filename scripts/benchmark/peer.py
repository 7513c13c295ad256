"""Runs TaskFlow in a separate process and prints the seconds it took.

    peer.py CONFIGURATION post|list|conduct COUNT

The time to start Python, import TaskFlow and connect does not count.
"""

import contextlib
import json
import logging
import subprocess
import sys
import threading
import time

from taskflow import engines, task
from taskflow.conductors import backends as conductors
from taskflow.jobs import backends as boards
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as stores
from taskflow.persistence import models

from jobs import details


class Command(task.Task):
    def execute(self):
        subprocess.run(["true"], check=True)


def flow():
    return linear_flow.Flow("flow").add(Command("command"))


def post(board, count, _):
    start = time.perf_counter()
    for number in range(count):
        board.post(f"job-{number}", details=details(number))
    return time.perf_counter() - start


def owner(board, job):
    try:
        return board.find_owner(job)
    except TypeError:
        # The Redis board raises this for an unclaimed job.
        return None


def list_all(board, count, _):
    start = time.perf_counter()
    owners = [owner(board, job) for job in board.iterjobs(ensure_fresh=True)]
    took = time.perf_counter() - start
    assert len(owners) == count, f"{len(owners)} jobs instead of {count}"
    return took


def conduct(board, count, store):
    """Lets a conductor run `count` jobs; posting them does not count."""
    with contextlib.closing(store.get_connection()) as connection:
        connection.upgrade()
        for number in range(count):
            book = models.LogBook(f"book-{number}")
            detail = models.FlowDetail("flow", f"{number:032x}")
            book.add(detail)
            engines.save_factory_details(detail, flow, [], {})
            connection.save_logbook(book)
            board.post(f"job-{number}", book=book, details={"flow_uuid": detail.uuid})
    # The faster of TaskFlow's two conductors: the other one pauses between polls.
    conductor = conductors.fetch("blocking", "bench", board, persistence=store, wait_timeout=0.01)
    done = threading.Semaphore(0)
    conductor.notifier.register("job_consumed", lambda kind, details: done.release())
    start = time.perf_counter()
    runner = threading.Thread(target=conductor.run)
    runner.start()
    for _ in range(count):
        done.acquire()
    took = time.perf_counter() - start
    conductor.stop()
    runner.join()
    return took


def main():
    # TaskFlow warns about each job that it fails to claim.
    logging.disable(logging.CRITICAL)
    conf, verb, count = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    verbs = {"post": post, "list": list_all, "conduct": conduct}
    # The conductor reads the flow of each job from the store.
    store = stores.fetch({"connection": "memory"})
    board = boards.fetch("bench", conf, persistence=store)
    board.connect()
    took = verbs[verb](board, count, store)
    board.close()
    print(took)


if __name__ == "__main__":
    main()
