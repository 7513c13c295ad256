"""A job board of Python TaskFlow that does what it is told: a JSON request a line, a JSON answer a line.

    taskflow.py CONFIGURATION

The configuration is that of the board, as JSON.
"""

import json
import sys
import time

from taskflow import exceptions
from taskflow.jobs import backends, base
from taskflow.types import entity


class Peer:
    def __init__(self, conf):
        self.board = backends.fetch("peer", conf)
        self.is_redis = conf["board"] == "redis"
        # What the board told of itself, as kind and uuid.
        self.told = []
        if not self.is_redis:
            for kind in (base.POSTED, base.REMOVAL):
                self.board.notifier.register(kind, self.hear)
            # Sees and makes nodes that the board would not.
            from kazoo.client import KazooClient

            self.raw = KazooClient(conf["hosts"])
            self.raw.start()
            self.raw.ensure_path("/")
        self.board.connect()
        # Jobs that are no longer on the board can still be asked about.
        self.known = {}

    def hear(self, kind, details):
        self.told.append([kind, details["job"].uuid])

    def jobs(self):
        jobs = list(self.board.iterjobs(ensure_fresh=True))
        self.known.update((job.uuid, job) for job in jobs)
        return jobs

    def job(self, uuid):
        # A job that was restored may be another one than before.
        if uuid not in self.known or not self.is_redis:
            self.jobs()
        return self.known[uuid]

    def owner_of(self, job):
        try:
            return self.board.find_owner(job)
        except TypeError:
            if not self.is_redis:
                raise
            # This is how the Redis board says that nobody has it.
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

    def claim(self, uuid, who, **expiry):
        self.board.claim(self.job(uuid), who, **expiry)

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

    def events(self):
        """Tells what the board has told of itself so far."""
        return self.told

    def register(self, name, host, pid):
        metadata = {"hostname": host, "pid": pid}
        self.board.register_entity(entity.Entity("conductor", f"{name}@{host}:{pid}", metadata))

    def close(self):
        """Ends the session in which the board was used, with all that lives as long."""
        self.board.close()

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

    def nodes(self, path):
        """Tells all nodes below this one, each with what it holds and with how it came to be."""
        nodes = {}
        for name in self.raw.get_children(path):
            child = f"{path.rstrip('/')}/{name}"
            data, stat = self.raw.get(child)
            nodes[child] = {
                "data": data.decode("latin-1"),
                "is_ephemeral": bool(stat.ephemeralOwner),
                "version": stat.version,
                "czxid": stat.czxid,
            }
            nodes.update(self.nodes(child))
        return nodes

    def write(self, path, data):
        self.raw.set(path, data.encode("latin-1"))

    def delete(self, path):
        self.raw.delete(path)

    def create(self, path, data="", hidden=False):
        """Makes a node, which nobody may read if it is to be hidden."""
        from kazoo.security import make_acl

        rights = {"write": True, "create": True, "delete": True, "admin": True, "read": not hidden}
        acl = [make_acl("world", "anyone", **rights)]
        self.raw.ensure_path(path.rsplit("/", 1)[0] or "/")
        self.raw.create(path, data.encode("latin-1"), acl=acl)


def main():
    peer = Peer(json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": getattr(peer, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
