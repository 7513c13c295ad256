"""Rows of Octavia's tables, as its API would have made them."""

import datetime
import uuid

import sqlalchemy
from octavia.common import constants, utils
from octavia.compute.drivers.noop_driver import driver as noop_compute
from octavia.db import api, base_models, models

PROJECT = "7b6f0d2e8c9a4f13a5d4c2b1e0f98765"

# What a listener and a pool say of the secrets that the certificate manager keeps for them.
SECRETS = "https://secrets.example/v1/containers/"


def new():
    return str(uuid.uuid4())


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)


def state(**more):
    return {
        "project_id": PROJECT,
        "enabled": True,
        "provisioning_status": constants.ACTIVE,
        "operating_status": constants.ONLINE,
        "created_at": now(),
        **more,
    }


def add(*rows):
    session = api.get_session()
    with session.begin():
        for row in rows:
            session.add(row)
            # In this order, for what one refers to must be there before it.
            session.flush()


def load_balancer(name="web", topology=constants.TOPOLOGY_ACTIVE_STANDBY, tls=True):
    """Makes a load balancer with its amphorae, and one of each that there can be on it."""
    of = {
        kind: new() for kind in ("loadbalancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")
    }
    vip = {"ip_address": "203.0.113.10", "port_id": new(), "subnet_id": new(), "network_id": new()}
    owned = {"octavia_owned": True, "vnic_type": constants.VNIC_TYPE_NORMAL}
    add(
        models.LoadBalancer(
            id=of["loadbalancer"], name=name, description="", topology=topology, provider="amphora", **state()
        ),
        models.Vip(load_balancer_id=of["loadbalancer"], **owned, **vip),
    )
    on_it(of, name, tls)
    roles = [constants.ROLE_MASTER, constants.ROLE_BACKUP]
    if topology == constants.TOPOLOGY_SINGLE:
        roles = [constants.ROLE_STANDALONE]
    else:
        add(
            models.VRRPGroup(
                load_balancer_id=of["loadbalancer"],
                vrrp_group_name=name,
                vrrp_auth_type=constants.VRRP_AUTH_DEFAULT,
                vrrp_auth_pass="of-test",
                advert_int=1,
            )
        )
    of["amphorae"] = [amphora(number, role, of["loadbalancer"], vip) for number, role in enumerate(roles)]
    of["amphora"] = of["amphorae"][0]
    return of


def on_it(of, name, tls):
    """Makes what is on it: a pool with a member and a monitor, a listener with a policy and a rule."""
    of_pool = {
        "tls_enabled": True,
        "tls_certificate_id": SECRETS + "pool",
        "ca_tls_certificate_id": SECRETS + "pool-ca",
        "crl_container_id": SECRETS + "pool-crl",
    }
    of_listener = {
        "tls_certificate_id": SECRETS + "listener",
        "client_authentication": constants.CLIENT_AUTH_OPTIONAL,
        "client_ca_tls_certificate_id": SECRETS + "client-ca",
        "client_crl_container_id": SECRETS + "client-crl",
        "tls_versions": ["TLSv1.2", "TLSv1.3"],
        "alpn_protocols": ["h2", "http/1.1"],
    }
    add(
        models.Pool(
            id=of["pool"],
            load_balancer_id=of["loadbalancer"],
            name=f"{name}-pool",
            protocol=constants.PROTOCOL_HTTP,
            lb_algorithm=constants.LB_ALGORITHM_ROUND_ROBIN,
            **(of_pool if tls else {}),
            **state(),
        ),
        member(of["member"], of["pool"], f"{name}-member", "192.0.2.11"),
        models.HealthMonitor(
            id=of["health_monitor"],
            pool_id=of["pool"],
            name=f"{name}-monitor",
            type=constants.HEALTH_MONITOR_HTTP,
            delay=5,
            timeout=4,
            fall_threshold=3,
            rise_threshold=2,
            http_method="GET",
            url_path="/healthy",
            expected_codes="200",
            **state(),
        ),
        models.Listener(
            id=of["listener"],
            load_balancer_id=of["loadbalancer"],
            default_pool_id=of["pool"],
            name=f"{name}-listener",
            protocol=constants.PROTOCOL_TERMINATED_HTTPS if tls else constants.PROTOCOL_HTTP,
            protocol_port=443 if tls else 80,
            connection_limit=-1,
            peer_port=1025,
            insert_headers={},
            **(of_listener if tls else {}),
            **state(),
        ),
    )
    if tls:
        add(models.SNI(listener_id=of["listener"], tls_container_id=SECRETS + "other-name", position=0))
    add(
        models.L7Policy(
            id=of["l7policy"],
            listener_id=of["listener"],
            name=f"{name}-policy",
            action=constants.L7POLICY_ACTION_REJECT,
            position=1,
            **state(),
        ),
        models.L7Rule(
            id=of["l7rule"],
            l7policy_id=of["l7policy"],
            type=constants.L7RULE_TYPE_PATH,
            compare_type=constants.L7RULE_COMPARE_TYPE_STARTS_WITH,
            value="/internal",
            **state(),
        ),
    )


def member(id, pool, name, address, **status):
    return models.Member(
        id=id,
        pool_id=pool,
        name=name,
        ip_address=address,
        protocol_port=8080,
        weight=1,
        backup=False,
        vnic_type=constants.VNIC_TYPE_NORMAL,
        **state(**status),
    )


def amphora(number, role, load_balancer=None, vip=None):
    """Makes an amphora, as one that has been built, and plugged into a network if it has a load balancer."""
    id, compute = new(), new()
    plugged = {}
    if load_balancer:
        address = f"203.0.113.{11 + number}"
        port = utils.get_network_driver().create_port(
            vip["network_id"], fixed_ips=[{"subnet_id": vip["subnet_id"], "ip_address": address}]
        )
        noop_compute.NoopComputeDriver().attach_network_or_port(compute, port_id=port.id)
        plugged = {
            "vrrp_ip": address,
            "vrrp_port_id": port.id,
            "ha_ip": vip["ip_address"],
            "ha_port_id": vip["port_id"],
            "vrrp_interface": "eth1",
            "vrrp_id": 1,
            "vrrp_priority": 100 - 10 * number,
        }
    add(
        models.Amphora(
            id=id,
            load_balancer_id=load_balancer,
            compute_id=compute,
            status=constants.AMPHORA_ALLOCATED,
            role=role,
            lb_network_ip=f"198.51.100.{21 + number}",
            cached_zone="nova",
            image_id=new(),
            compute_flavor="1",
            created_at=now(),
            **plugged,
        )
    )
    return id


def spare():
    """Makes an amphora that belongs to no load balancer."""
    id = amphora(9, None)
    return {"loadbalancer": None, "amphora": id, "amphorae": [id]}


def put(table, id, status):
    """Sets a status that the API sets before it has something done."""
    rows = base_models.BASE.metadata.tables[table]
    session = api.get_session()
    with session.begin():
        session.execute(sqlalchemy.update(rows).where(rows.c.id == id).values(provisioning_status=status))


def status(table, id):
    """Returns what became of one; `None` where there is none."""
    rows = base_models.BASE.metadata.tables[table]
    column = rows.c.status if table == "amphora" else rows.c.provisioning_status
    session = api.get_session()
    with session.begin():
        return session.execute(sqlalchemy.select(column).where(rows.c.id == id)).scalar_one_or_none()


def execute(words):
    session = api.get_session()
    with session.begin():
        session.execute(sqlalchemy.text(words))
