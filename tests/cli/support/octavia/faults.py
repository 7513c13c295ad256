"""What goes wrong, or is slow, in the calls that flows make of the no-op drivers, and in what makes flows."""

import functools
import importlib
import inspect
import os
import threading
import time

from octavia.amphorae.drivers.noop_driver import driver as amphora
from octavia.compute.drivers.noop_driver import driver as compute
from octavia.controller.worker.v2.flows import flow_utils
from octavia.network.drivers.noop_driver import driver as network

DRIVERS = {
    "amphora": amphora.NoopAmphoraLoadBalancerDriver,
    "compute": compute.NoopComputeDriver,
    "network": network.NoopNetworkDriver,
}

# Calls that stand still, each until a file is there; and calls that fail: with what, and how often yet.
held = {}
failing = {}
# Factories as they were.
outgrown = {}
# A function to be told of what stands.
told = []

changing = threading.Lock()


def calls():
    return sorted(f"{name}.{method}" for name, driver in DRIVERS.items() for method in methods(driver))


def methods(driver):
    return [name for name, _ in inspect.getmembers(driver, inspect.isfunction) if not name.startswith("_")]


def known(at):
    if at not in calls():
        raise KeyError(f"{at} is no call of a no-op driver")
    return at


def hold(at, until):
    held[known(at)] = until


def fail(at, words="of a test", kind="builtins.RuntimeError", times=None):
    module, name = kind.rsplit(".", 1)
    kind = getattr(importlib.import_module(module), name)
    made = functools.partial(kind, **words) if isinstance(words, dict) else functools.partial(kind, words)
    failing[known(at)] = [made, times]


def outgrow(factory):
    """Has a factory ask for what no posting gives it; one that posts does not notice."""

    def newer(*, of_another_release):
        pass

    present = outgrown.setdefault(factory, getattr(flow_utils, factory))
    newer.__module__, newer.__name__, newer.__qualname__ = present.__module__, factory, factory
    setattr(flow_utils, factory, newer)


def mend():
    held.clear()
    failing.clear()
    for factory, as_it_was in outgrown.items():
        setattr(flow_utils, factory, as_it_was)
    outgrown.clear()


def stands(at):
    until = held.get(at)
    return until is not None and not os.path.exists(until)


def meet(at):
    """Stands still, fails, or does neither, as this call is to do."""
    if stands(at):
        for tell in told:
            tell(at)
    while stands(at):
        time.sleep(0.02)
    with changing:
        if at not in failing:
            return
        kind, times = failing[at]
        if times is not None:
            failing[at][1] = times - 1
            if times <= 1:
                del failing[at]
    raise kind()


def watched(at, method):
    @functools.wraps(method)
    def meeting(*args, **kwargs):
        meet(at)
        return method(*args, **kwargs)

    return meeting


for name, driver in DRIVERS.items():
    for method in methods(driver):
        setattr(driver, method, watched(f"{name}.{method}", getattr(driver, method)))
