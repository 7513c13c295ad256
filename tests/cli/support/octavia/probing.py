"""What oslo.config makes of files, folders and an environment, and which board Octavia's drivers make of that.

The options, their defaults and their kinds are Octavia's own, and so is the way in which it has them read.
"""

import contextlib
import copy
import os
from unittest import mock

from octavia.common import config
from octavia.controller.worker.v2 import taskflow_jobboard_driver as drivers
from octavia.db import api  # noqa: F401, for its options
from oslo_config import cfg
from redis import connection
from taskflow.jobs.backends import impl_redis
from taskflow.utils import kazoo_utils

# What connections are made with.
MADE_WITH = (
    "host", "port", "db", "username", "password",
    "ssl_keyfile", "ssl_certfile", "ssl_ca_certs", "ssl_cert_reqs",
)  # fmt: skip

DRIVERS = {
    "redis_taskflow_driver": drivers.RedisTaskFlowDriver,
    "zookeeper_taskflow_driver": drivers.ZookeeperTaskFlowDriver,
    "etcd_taskflow_driver": drivers.EtcdTaskFlowDriver,
}

# A driver writes into what it was given, even into a default.
DEFAULTS = [(option, copy.deepcopy(option.default)) for option in config.task_flow_opts]


def probe(args, environ):
    """Reads what octavia-worker would read if it was started with these arguments, in this environment."""
    for option, default in DEFAULTS:
        option.default = copy.deepcopy(default)
    cfg.CONF.clear()
    with mock.patch.dict(os.environ, environ):
        config.init(args, prog="octavia-worker")
        # Before a driver changes any of it.
        read = {
            "task_flow": {option.dest: one(option.dest, "task_flow") for option in config.task_flow_opts},
            "database": {"connection": one("connection", "database")},
            "files": cfg.CONF.config_file,
            "folders": cfg.CONF.config_dir,
        }
        return copy.deepcopy(read) | {"board": board()}


def one(name, group):
    """Returns the value of an option and where that comes from, or why it has none."""
    try:
        value = cfg.CONF[group][name]
        # There is none where there is not even a default.
        where = cfg.CONF.get_location(name, group) or cfg.LocationInfo(cfg.Locations.opt_default, None)
        return {"value": value, "from": where.location.name, "where": where.detail}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def board():
    """Returns how TaskFlow would be told of the board, and with which client it would then connect, and to where."""
    made = {}

    def backend(name, conf, persistence, **_):
        made.update(name=name, conf=conf)
        return contextlib.nullcontext()

    def client(conf):
        made.update(client_conf=conf, client=of_zookeeper(conf))
        return mock.Mock()

    try:
        driver = DRIVERS[cfg.CONF.task_flow.jobboard_backend_driver](None)
        kazoo = mock.patch("taskflow.utils.kazoo_utils.make_client", client)
        with kazoo, mock.patch.object(drivers.job_backends, "backend", backend):
            driver.job_board(None)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    if made["conf"]["board"] == "redis":
        made["client"] = of_redis(made["conf"])
    return made


def of_redis(conf):
    """Returns what the client would do, which is made and not used."""
    try:
        pool = impl_redis.RedisJobBoard._make_client(conf).connection_pool
        sentinels = getattr(pool, "sentinel_manager", None)
        sentinels = [connections(sentinel.connection_pool) for sentinel in sentinels.sentinels] if sentinels else []
        return connections(pool) | {"sentinels": sentinels}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def connections(pool):
    how = pool.connection_kwargs
    with_tls = issubclass(pool.connection_class, connection.SSLConnection)
    try:
        # Of a sentinel's it is the master that is connected to, which nobody knows yet.
        managed = {"connection_pool": pool} if "connection_pool" in how else {}
        pool.connection_class(**how | managed)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"tls": with_tls, **{name: how[name] for name in MADE_WITH if how.get(name) is not None}}


def of_zookeeper(conf, make_client=kazoo_utils.make_client):
    try:
        client = make_client(conf)
        tls = {name: getattr(client, name) for name in ("use_ssl", "keyfile", "certfile", "ca", "verify_certs")}
        return {"hosts": list(client.hosts), **tls}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
