"""Local servers on free ports, with temporary directories."""

import os
import socket

from kazoo.client import KazooClient
from redis import Redis as RedisClient
from redis.exceptions import ConnectionError as NotYet

from processes import Failed, Process, until

CONFIGURATION = """\
tickTime=2000
forceSync=no
admin.enableServer=false
maxClientCnxns=0
4lw.commands.whitelist=*
clientPortAddress=127.0.0.1
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Redis:
    """A Redis server that writes nothing to disk."""

    def __init__(self, folder):
        os.mkdir(folder)
        self.port = free_port()
        settings = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder]
        settings += ["--save", "", "--appendonly", "no"]
        self.process = Process(["redis-server", *settings], os.path.join(folder, "log"))
        self.client = RedisClient(port=self.port)
        until("Redis answers", self.answers)

    def answers(self):
        if not self.process.is_running():
            raise Failed(f"Redis does not start; see {self.process.log}")
        try:
            return self.client.ping()
        except NotYet:
            return False

    def url(self, name):
        return f"redis://127.0.0.1:{self.port}?namespace={name}"

    def taskflow(self, name):
        return {"board": "redis", "host": "127.0.0.1", "port": self.port, "namespace": name}

    def cli(self, *words):
        return ["redis-cli", "-p", str(self.port), *words]

    def clear(self):
        self.client.flushall()

    def stop(self):
        self.client.close()
        self.process.stop()


class ZooKeeper:
    """A ZooKeeper server that does not wait for the disk."""

    def __init__(self, folder):
        os.mkdir(folder)
        self.port = free_port()
        file = os.path.join(folder, "zoo.cfg")
        with open(file, "w") as configuration:
            configuration.write(f"{CONFIGURATION}dataDir={folder}/data\nclientPort={self.port}\n")
        # Keep the default size limit for replies: TaskFlow's services need no higher one.
        java = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-Dzookeeper.jmx.log4j.disable=true"]
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = [*java, "-cp", "/usr/share/java/zookeeper.jar", main, file]
        self.process = Process(command, os.path.join(folder, "log"), cwd=folder)
        until("ZooKeeper answers", self.answers)
        self.client = KazooClient(f"127.0.0.1:{self.port}")
        self.client.start()

    def answers(self):
        if not self.process.is_running():
            raise Failed(f"ZooKeeper does not start; see {self.process.log}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as stream:
                stream.sendall(b"srvr")
                return b"Mode:" in stream.makefile("rb").read()
        except OSError:
            return False

    def url(self, name):
        return f"zk://127.0.0.1:{self.port}/{name}/jobs"

    def taskflow(self, name):
        return {"board": "zookeeper", "hosts": f"127.0.0.1:{self.port}", "path": f"/{name}/jobs"}

    def stop(self):
        self.client.stop()
        self.client.close()
        self.process.stop()
