"""A conductor of Octavia, as octavia-worker runs one, and what becomes of its jobs."""

import functools
import threading
import uuid

from octavia.common import base_taskflow
from octavia.controller.worker.v2 import controller_worker
from taskflow import states
from taskflow.jobs.backends import impl_redis, impl_zookeeper
from taskflow.listeners import base

import faults

# What conductors do with a board, and what is told of it.
TOLD = {"claim": "claimed", "consume": "consumed", "abandon": "abandoned", "trash": "trashed"}

# Of an atom, what is told beside that it failed.
WRONG = (states.FAILURE, states.REVERTING, states.REVERTED, states.REVERT_FAILURE, states.RETRYING)


class Teller(base.Listener):
    """Tells of a flow, and of what goes wrong in it."""

    def __init__(self, engine, job, tell):
        super().__init__(engine)
        self.of = {"job": job.uuid, "name": job.name}
        self.tell = tell

    def _flow_receiver(self, state, details):
        self.tell({"event": "flow", "state": state, **self.of})

    def atom(self, kind, state, details):
        if state in WRONG:
            result = details.get("result")
            words = getattr(result, "exception_str", None) if state == states.FAILURE else None
            self.tell({"event": "atom", "atom": details[f"{kind}_name"], "state": state, "failure": words, **self.of})

    def _task_receiver(self, state, details):
        self.atom("task", state, details)

    def _retry_receiver(self, state, details):
        self.atom("retry", state, details)


def start(name, tell):
    """Starts a conductor in a thread, and returns what it is called."""
    name = name or f"octavia-task-flow-conductor-{uuid.uuid4()}"
    present = []

    def done(method, event):
        @functools.wraps(method)
        def doing(board, job, who, **how):
            result = method(board, job, who, **how)
            present[:] = [job] if event == "claimed" else []
            tell({"event": event, "job": job.uuid, "name": job.name, "owner": who})
            return result

        return doing

    for board in (impl_redis.RedisJobBoard, impl_zookeeper.ZookeeperJobBoard):
        for method, event in TOLD.items():
            setattr(board, method, done(getattr(board, method), event))

    conductor = base_taskflow.DynamicLoggingConductor
    listeners = conductor._listeners_from_job
    conductor._listeners_from_job = lambda self, job, engine: listeners(self, job, engine) + [Teller(engine, job, tell)]
    faults.told.append(lambda at: tell({"event": "standing", "at": at, "job": present[0].uuid if present else None}))

    controller = controller_worker.ControllerWorker().services_controller

    def run():
        error = None
        try:
            controller.run_conductor(name)
        except BaseException as ended:
            error = f"{type(ended).__name__}: {ended}"
        tell({"event": "stopped", "error": error})

    threading.Thread(target=run, daemon=True).start()
    return {"name": name}
