"""The machine and the versions."""

import os
import platform
import subprocess


def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError:
        return "missing"
    return (done.stdout.splitlines() or [""])[0]


def model():
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    return platform.machine()


def version(package):
    from importlib import metadata

    return f"{package} {metadata.version(package)}"


def zookeeper():
    query = ["dpkg-query", "--show", "--showformat", "ZooKeeper ${Version}", "libzookeeper-java"]
    return first_line(*query)


def state(program):
    """Describes the machine, its load, and the versions of all programs."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": model(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
        "versions": [
            first_line(program, "--version"),
            first_line("redis-cli", "--version"),
            first_line("redis-server", "--version").split(" sha")[0],
            zookeeper(),
            "sqlite3 " + first_line("sqlite3", "--version").split(" ")[0],
            first_line("xargs", "--version"),
            f"Python {platform.python_version()}",
            *(version(package) for package in ("taskflow", "redis", "kazoo")),
        ],
    }
