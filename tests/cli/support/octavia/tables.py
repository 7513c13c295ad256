"""All tables: Octavia's own, and those of TaskFlow, which has nothing but migrations."""

import contextlib
import sqlite3

import alembic.command
import alembic.config
from octavia.common import constants
from octavia.controller.worker.v2 import taskflow_jobboard_driver
from octavia.db import api, base_models, models
from oslo_config import cfg

# The migrations of Octavia fill these too.
LOOKED_UP = {
    models.ProvisioningStatus: constants.SUPPORTED_PROVISIONING_STATUSES,
    models.OperatingStatus: constants.SUPPORTED_OPERATING_STATUSES,
    models.Protocol: constants.SUPPORTED_PROTOCOLS,
    models.Algorithm: constants.SUPPORTED_LB_ALGORITHMS,
    models.AmphoraRoles: constants.SUPPORTED_AMPHORA_ROLES,
    models.LBTopology: constants.SUPPORTED_LB_TOPOLOGIES,
    models.SessionPersistenceType: constants.SUPPORTED_SP_TYPES,
    models.HealthMonitorType: constants.SUPPORTED_HEALTH_MONITOR_TYPES,
    models.VRRPAuthMethod: constants.SUPPORTED_VRRP_AUTH,
    models.L7RuleType: constants.SUPPORTED_L7RULE_TYPES,
    models.L7RuleCompareType: constants.SUPPORTED_L7RULE_COMPARE_TYPES,
    models.L7PolicyAction: constants.SUPPORTED_L7POLICY_ACTIONS,
    models.ClientAuthenticationMode: constants.SUPPORTED_CLIENT_AUTH_MODES,
}


def create(migrate):
    """Makes Octavia's tables from its models, which takes no second, or by its migrations, which takes five.

    These know MariaDB only, and count in the same place as TaskFlow's, whose tables must be in another database then.
    """
    if migrate:
        migrations = alembic.config.Config()
        migrations.set_main_option("script_location", "octavia.db.migration:alembic_migrations")
        migrations.octavia_config = cfg.CONF
        alembic.command.upgrade(migrations, "head")
    else:
        model()
    taskflow_jobboard_driver.MysqlPersistenceDriver().initialize()


def model():
    engine = api.get_engine()
    if engine.dialect.name == "sqlite":
        # Octavia reads in one session while it writes in another. Not within a transaction, as `engine` would have it.
        with contextlib.closing(sqlite3.connect(engine.url.database)) as database:
            database.execute("PRAGMA journal_mode=WAL")
    base_models.BASE.metadata.create_all(engine)
    session = api.get_session()
    with session.begin():
        for looked_up, names in LOOKED_UP.items():
            session.add_all(looked_up(name=name) for name in names)
        session.add(models.AmphoraBuildSlots(id=1, slots_used=0))
