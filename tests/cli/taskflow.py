"""A job board of Python TaskFlow that does what it is told: a JSON request a line, a JSON answer a line.

    taskflow.py PORT NAMESPACE
"""

import json
import sys
import time

from taskflow import exceptions
from taskflow.jobs import backends, base


class Peer:
    def __init__(self, port, namespace):
        conf = {"board": "redis", "host": "127.0.0.1", "port": port, "namespace": namespace}
        self.board = backends.fetch("peer", conf)
        self.board.connect()
        # Jobs that are no longer on the board can still be asked about.
        self.known = {}

    def jobs(self):
        jobs = list(self.board.iterjobs(ensure_fresh=True))
        self.known.update((job.uuid, job) for job in jobs)
        return jobs

    def job(self, uuid):
        if uuid not in self.known:
            self.jobs()
        return self.known[uuid]

    def owner_of(self, job):
        try:
            return self.board.find_owner(job)
        except TypeError:
            # This is how TaskFlow says that nobody has it.
            return None

    def post(self, name, details=None, priority="NORMAL"):
        job = self.board.post(name, details=details, priority=base.JobPriority.convert(priority))
        self.known[job.uuid] = job
        return job.uuid

    def list(self):
        return [
            {
                "uuid": job.uuid,
                "name": job.name,
                "state": job.state,
                "priority": job.priority.value,
                "sequence": job.sequence,
                "details": job.details,
                "owner": self.owner_of(job),
            }
            for job in self.jobs()
        ]

    def claim(self, uuid, who, expiry=None):
        self.board.claim(self.job(uuid), who, expiry=expiry)

    def abandon(self, uuid, who):
        self.board.abandon(self.job(uuid), who)

    def consume(self, uuid, who):
        self.board.consume(self.job(uuid), who)

    def trash(self, uuid, who):
        self.board.trash(self.job(uuid), who)

    def owner(self, uuid):
        return self.owner_of(self.job(uuid))

    def state(self, uuid):
        return self.job(uuid).state

    def extend(self, uuid, expiry):
        return self.job(uuid).extend_expiry(expiry)

    def expires_in(self, uuid):
        return float(self.job(uuid).expires_in())

    def is_modified(self, uuid):
        return self.job(uuid).last_modified is not None

    def burst(self, count, who):
        """Posts that many jobs, then claims them all, then consumes them all."""
        jobs = [self.board.post(f"burst-{number}") for number in range(count)]
        for job in jobs:
            self.board.claim(job, who)
        for job in jobs:
            self.board.consume(job, who)

    def work(self, who, pause):
        """Claims and consumes whatever there is, a pause later, until the board is empty."""
        consumed = []
        while self.board.job_count:
            for job in self.board.iterjobs(only_unclaimed=True, ensure_fresh=True):
                try:
                    self.board.claim(job, who)
                except (exceptions.UnclaimableJob, exceptions.NotFound):
                    continue
                time.sleep(pause)
                self.board.consume(job, who)
                consumed.append(job.uuid)
            time.sleep(pause)
        return consumed


def main():
    peer = Peer(int(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": getattr(peer, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
