"""Posting flows, all the way that a request takes in Octavia: from the driver of its API to its ControllerWorker.

Only the message queue between the two is left out. What goes through it is turned into JSON and back, as it would be.
"""

import collections
import contextlib
import functools
import queue
import threading

from octavia.api.drivers import utils
from octavia.api.drivers.amphora_driver.v2 import driver as amphora
from octavia.common import constants
from octavia.controller.queue.v2 import endpoints
from octavia.controller.worker.v2 import taskflow_jobboard_driver
from octavia.db import api, repositories
from octavia_lib.api.drivers import data_models as provided
from oslo_serialization import jsonutils
from taskflow import exceptions
from taskflow.jobs.backends import impl_redis, impl_zookeeper

import rows

Kind = collections.namedtuple("Kind", "repository provided_of model changed")

# What there can be on a load balancer: how the API tells a driver of it, and what an update changes.
KINDS = {
    "listener": Kind(
        repositories.ListenerRepository,
        utils.db_listener_to_provider_listener,
        provided.Listener,
        {"connection_limit": 200},
    ),
    "pool": Kind(
        repositories.PoolRepository, utils.db_pool_to_provider_pool, provided.Pool, {"lb_algorithm": "SOURCE_IP"}
    ),
    "member": Kind(
        repositories.MemberRepository, utils.db_member_to_provider_member, provided.Member, {"weight": 7}
    ),
    "health_monitor": Kind(
        repositories.HealthMonitorRepository, utils.db_HM_to_provider_HM, provided.HealthMonitor, {"delay": 9}
    ),
    "l7policy": Kind(
        repositories.L7PolicyRepository, utils.db_l7policy_to_provider_l7policy, provided.L7Policy, {"position": 2}
    ),
    "l7rule": Kind(
        repositories.L7RuleRepository, utils.db_l7rule_to_provider_l7rule, provided.L7Rule, {"value": "/other"}
    ),
}

PENDING = {verb: getattr(constants, f"PENDING_{verb.upper()}") for verb in ("create", "update", "delete")}

# What has been posted, in this order, and of a board on ZooKeeper where that is.
posted = []
paths = []

# Where the thread that serves a request says what became of it.
mine = threading.local()


class Queue:
    """In place of the message queue, and of the server at its other end, which has a thread for each request."""

    def __init__(self):
        self.server = endpoints.Endpoints()
        self.worker = self.server.worker
        self.run_flow = self.worker.run_flow
        self.worker.run_flow = self.heard
        self.answers = queue.SimpleQueue()

    def heard(self, *args, **kwargs):
        """Runs a flow, and says why it could not be posted: callers keep that to themselves."""
        try:
            self.run_flow(*args, **kwargs)
        except Exception as error:
            mine.answers.put(error)
            raise

    def cast(self, _, method, **payload):
        self.serve(functools.partial(getattr(self.server, method), {}), **jsonutils.loads(jsonutils.dumps(payload)))

    def serve(self, method, **payload):
        self.answers = answers = queue.SimpleQueue()

        def work():
            mine.answers = answers
            try:
                method(**payload)
                answers.put(RuntimeError("it came to its end without a posting"))
            except Exception as error:
                answers.put(error)

        threading.Thread(target=work, daemon=True).start()

    def job(self):
        """Returns the job that came of the last request, as soon as it is posted; who posted it waits for its end."""
        answer = self.answers.get(timeout=120)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answered(post):
    """Has whoever waits for an answer to a request get the job that came of it."""

    @functools.wraps(post)
    def answering(*args, **kwargs):
        job = post(*args, **kwargs)
        mine.answers.put(job)
        return job

    return answering


for board in (impl_redis.RedisJobBoard, impl_zookeeper.ZookeeperJobBoard):
    board.post = answered(board.post)


@functools.cache
def api_driver():
    driver = amphora.AmphoraProviderDriver()
    driver.client = Queue()
    return driver


def get(repository, id):
    session = api.get_session()
    with session.begin():
        return repository().get(session, id=id)


def change(verb, kind, driver, ids):
    """Creates, updates or deletes what is on a load balancer."""
    rows.put("load_balancer", ids["loadbalancer"], constants.PENDING_UPDATE)
    rows.put(kind, ids[kind], PENDING[verb])
    of = KINDS[kind]
    present = of.provided_of(get(of.repository, ids[kind]))
    method = getattr(driver, f"{kind}_{verb}")
    if verb != "update":
        return method(present)
    key = "healthmonitor_id" if kind == "health_monitor" else f"{kind}_id"
    method(present, of.model.from_dict({key: ids[kind], **of.changed}))


def change_load_balancer(verb, driver, ids, **how):
    rows.put("load_balancer", ids["loadbalancer"], PENDING[verb])
    row = get(repositories.LoadBalancerRepository, ids["loadbalancer"])
    present = utils.db_loadbalancer_to_provider_loadbalancer(row, for_delete=verb == "delete")
    if verb == "update":
        change = provided.LoadBalancer.from_dict({"loadbalancer_id": ids["loadbalancer"], "name": "renamed"})
        driver.loadbalancer_update(present, change)
    else:
        getattr(driver, f"loadbalancer_{verb}")(present, **how)


def replace_members(driver, ids):
    """Has the pool change one member, lose another and gain a third, all in one request."""
    rows.put("load_balancer", ids["loadbalancer"], constants.PENDING_UPDATE)
    rows.put("pool", ids["pool"], constants.PENDING_UPDATE)
    rows.put("member", ids["member"], constants.PENDING_UPDATE)
    leaving = {"provisioning_status": constants.PENDING_DELETE}
    rows.add(rows.member(rows.new(), ids["pool"], "leaving", "192.0.2.12", **leaving))
    changed = utils.db_member_to_provider_member(get(repositories.MemberRepository, ids["member"]))
    changed.weight = 3
    joining = provided.Member.from_dict(changed.to_dict() | {"member_id": rows.new(), "address": "192.0.2.13"})
    # Who takes the request from the queue waits for the row of what is new; the driver must not see it there before.
    driver.member_batch_update(ids["pool"], [changed, joining])
    pending = {"provisioning_status": constants.PENDING_CREATE}
    rows.add(rows.member(joining.member_id, ids["pool"], "joining", joining.address, **pending))


def fail_over(driver, ids):
    rows.put("load_balancer", ids["loadbalancer"], constants.PENDING_UPDATE)
    driver.loadbalancer_failover(ids["loadbalancer"])


def on_amphora(method, driver, ids):
    """Has something done to an amphora, as the API, the health manager and the housekeeping do."""
    if ids["loadbalancer"]:
        rows.put("load_balancer", ids["loadbalancer"], constants.PENDING_UPDATE)
    if method == "amphora_cert_rotation":
        driver.client.serve(driver.client.worker.amphora_cert_rotation, amphora_id=ids["amphora"])
    else:
        driver.client.cast({}, method, amphora_id=ids["amphora"])


FLOWS = {
    **{f"{verb}_{kind}": functools.partial(change, verb, kind) for kind in KINDS for verb in PENDING},
    **{f"{verb}_load_balancer": functools.partial(change_load_balancer, verb) for verb in PENDING},
    "cascade_delete_load_balancer": functools.partial(change_load_balancer, "delete", cascade=True),
    "failover_load_balancer": fail_over,
    "batch_update_members": replace_members,
    "failover_amphora": functools.partial(on_amphora, "failover_amphora"),
    "delete_amphora": functools.partial(on_amphora, "delete_amphora"),
    "rotate_amphora": functools.partial(on_amphora, "amphora_cert_rotation"),
    "update_amphora": functools.partial(on_amphora, "update_amphora_agent_config"),
}


def post(flow, ids):
    """Posts a flow on these rows, or on fresh ones."""
    ids = ids or rows.load_balancer()
    driver = api_driver()
    FLOWS[flow](driver, ids)
    job = driver.client.job()
    # Five groups of letters and digits make a uuid, and what is before them the factory.
    factory, *of_uuid = job.name.rsplit("-", 5)
    answer = {
        "flow": flow,
        "factory": factory,
        "job": job.uuid,
        "name": job.name,
        "book": job.book_uuid,
        "flow_uuid": "-".join(of_uuid),
        "loadbalancer": ids["loadbalancer"],
        "amphora": ids["amphora"],
        "ids": ids,
    }
    posted.append((answer, job.details))
    paths.append(getattr(job, "path", None))
    return answer


def everything_posted():
    """Returns what was posted with all that a conductor is told: the store on the board, the factory in the logbook."""
    persistence = taskflow_jobboard_driver.MysqlPersistenceDriver()
    with persistence.get_persistence() as backend, contextlib.closing(backend.get_connection()) as connection:
        return [
            {**answer, "details": details, "meta": meta_of(connection, answer["flow_uuid"])}
            for answer, details in posted
        ]


def meta_of(connection, flow):
    """Returns what is kept beside a flow, if it is still there."""
    try:
        return connection.get_flow_details(flow).meta
    except exceptions.NotFound:
        return None
