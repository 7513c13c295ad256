"""The octavia.conf: writing one, and having Octavia read it."""

import datetime
import os
import re
import sys
import types

NO_OP = {
    "DEFAULT": {"transport_url": "fake://"},
    "controller_worker": {
        "amphora_driver": "amphora_noop_driver",
        "compute_driver": "compute_noop_driver",
        "network_driver": "network_noop_driver",
        "image_driver": "image_noop_driver",
        "volume_driver": "volume_noop_driver",
        "amp_boot_network_list": "11111111-2222-4333-8444-555555555555",
    },
    "certificates": {
        "cert_manager": "noop_cert_manager",
        "cert_generator": "local_cert_generator",
        "ca_private_key_passphrase": "of-a-test",
        "server_certs_key_passphrase": "no-secret-but-thirty-two-letters",
    },
    "nova": {"enable_anti_affinity": "False"},
    "health_manager": {"heartbeat_key": "of-a-test"},
}


def load(settings):
    """Writes the configuration if there is anything to write, and has Octavia read it."""
    folder = os.path.dirname(os.path.abspath(settings["conf"]))
    if "board" in settings:
        authority(folder)
        write(settings, folder)
    unsorted()
    own_certificates()
    from octavia.common import config, rpc
    from oslo_config import cfg

    config.init(["--config-file", settings["conf"]], default_config_dirs=[])
    config.setup_logging(cfg.CONF)
    if cfg.CONF.database.connection.startswith("sqlite:"):
        # SQLAlchemy knows of no such thing there, and a file cannot say so.
        cfg.CONF.set_override("pool_timeout", None, "database")
    rpc.init()
    hasten_commits()
    share_tables()
    own_ports(folder)


def hasten_commits():
    """Lets SQLite commit without waiting for the disk. These databases need not survive a power failure."""
    import sqlalchemy

    def connected(connection, _):
        if type(connection).__module__ == "sqlite3":
            connection.execute("PRAGMA synchronous = OFF")

    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", connected)


def share_tables():
    """Lets TaskFlow's connections share one description of its tables. Otherwise each of them makes its own."""
    import sqlalchemy
    from taskflow.persistence.backends.sqlalchemy import tables

    metadata = sqlalchemy.MetaData()
    shared = tables.fetch(metadata)

    def fetch(own):
        vars(own).update(vars(metadata))
        return shared

    tables.fetch = fetch


def write(settings, folder):
    board = settings["board"]
    made = {group: dict(options) for group, options in NO_OP.items()}
    made["DEFAULT"]["log_file"] = f"{folder}/octavia.log"
    made["database"] = {"connection": settings["database"]}
    made["task_flow"] = {
        "jobboard_enabled": "True",
        "persistence_connection": settings.get("persistence") or beside(settings["database"]),
        "jobboard_backend_driver": f"{board['driver']}_taskflow_driver",
        "jobboard_backend_hosts": ",".join(board["hosts"]),
        "jobboard_backend_port": board["port"],
        "jobboard_backend_namespace": board.get("namespace", "octavia_jobboard"),
    }
    if settings["database"].startswith("sqlite:"):
        # One writer at a time is all that it has.
        made["task_flow"]["engine"] = "serial"
    made["controller_worker"]["client_ca"] = f"{folder}/ca.pem"
    made["certificates"] |= {"ca_certificate": f"{folder}/ca.pem", "ca_private_key": f"{folder}/ca.key"}
    for group, options in settings.get("options", {}).items():
        made.setdefault(group, {}).update(options)
    with open(settings["conf"], "w") as conf:
        for group, options in made.items():
            conf.write(f"[{group}]\n")
            # A `$` alone would begin the name of another option.
            conf.writelines(f"{name} = {str(value).replace('$', '$$')}\n" for name, value in options.items())


def beside(database):
    """Returns where TaskFlow keeps its tables: with those of Octavia, and on SQLite in a file of their own.

    There one of the two would wait for the other, which is the same thread, in vain.
    """
    return re.sub(r"^(sqlite:///.*/)[^/]*$", r"\1taskflow.db", database)


def signed(name, issuer=None):
    """Makes a certificate, signed by another one or by itself; returns it with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=3650))
        .sign(issuer[1] if issuer else key, hashes.SHA256())
    )
    return certificate, key


def pem(certificate, key, passphrase):
    from cryptography.hazmat.primitives import serialization as how

    encryption = how.BestAvailableEncryption(passphrase)
    return (
        certificate.public_bytes(how.Encoding.PEM),
        key.private_bytes(how.Encoding.PEM, how.PrivateFormat.TraditionalOpenSSL, encryption),
    )


def authority(folder):
    """Makes the CA of amphorae. A flow that needs one fails where ca.pem is taken away."""
    if os.path.exists(f"{folder}/ca.pem"):
        return
    passphrase = NO_OP["certificates"]["ca_private_key_passphrase"].encode()
    for name, text in zip(("ca.pem", "ca.key"), pem(*signed("amphorae"), passphrase)):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(text)


def unsorted():
    """Leaves the types of Octavia's API as they come. To sort them their source is read: most of a start's time."""
    import wsme.types

    wsme.types.sort_attributes = lambda *_: None


def own_certificates():
    """Has the no-op certificate manager hand out certificates that were made here: two, one signed by the other.

    Where a text is asked for, be it a CA or what it has revoked, it is the one that signed.
    """
    issuer = signed("intermediate.example")
    made = types.ModuleType("octavia.tests.common.sample_certs")
    made.X509_CERT_KEY_PASSPHRASE = b"of-a-test"
    made.X509_CERT, made.X509_CERT_KEY_ENCRYPTED = pem(*signed("www.example", issuer), made.X509_CERT_KEY_PASSPHRASE)
    made.X509_IMDS = pem(*issuer, made.X509_CERT_KEY_PASSPHRASE)[0]
    sys.modules[made.__name__] = made
    parent = types.ModuleType("octavia.tests.common")
    parent.sample_certs = made
    tests = types.ModuleType("octavia.tests")
    tests.common = parent
    sys.modules.update({"octavia.tests": tests, "octavia.tests.common": parent})
    from octavia.certificates.manager import noop

    noop.NoopCertManager.get_secret = lambda *_: made.X509_IMDS.decode()


def own_ports(folder):
    """Has the no-op drivers keep their ports in this folder; left alone they share one file with everybody."""
    import octavia.compute.drivers.noop_driver.driver as compute
    import octavia.network.drivers.noop_driver.driver as network
    import sqlalchemy

    def engine(_, **options):
        return sqlalchemy.create_engine(f"sqlite:///{folder}/ports.db", **options)

    compute.create_engine = network.create_engine = engine
