"""Processes: timing, peak memory and cleanup."""

import os
import re
import signal
import subprocess
import time


class Failed(Exception):
    """A measurement failed."""


def seconds(command, stdin=os.devnull, stdout=os.devnull, env=None):
    """Returns the run time of a program in seconds. The program must succeed."""
    return timed(command, stdin, stdout, env)[0]


def processor(command, stdin=os.devnull):
    """Returns the processor time of a program and its waited-for children, in seconds."""
    return timed(command, stdin)[1]


def timed(command, stdin=os.devnull, stdout=os.devnull, env=None):
    """Returns the run time and the processor time in seconds."""
    into = os.open(stdin, os.O_RDONLY)
    out = os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    files = [(os.POSIX_SPAWN_DUP2, into, 0), (os.POSIX_SPAWN_DUP2, out, 1)]
    try:
        # Do as little as possible between the two readings of the clock.
        start = time.perf_counter()
        pid = os.posix_spawnp(command[0], command, env or os.environ, file_actions=files)
        _, status, usage = os.wait4(pid, 0)
        took = time.perf_counter() - start
    finally:
        os.close(into)
        os.close(out)
    if status:
        raise Failed(f"{' '.join(command[:4])} … exited with {os.waitstatus_to_exitcode(status)}")
    return took, usage.ru_utime + usage.ru_stime


def peak(command, stdin=os.devnull):
    """Returns the run time in seconds and the peak memory in bytes."""
    took, most, _ = watch(command, stdin)
    return took, most


def watch(command, stdin=os.devnull):
    """Returns the run time, the peak memory and the lines on standard error."""
    with open(stdin, "rb") as into:
        # A direct child would start with the peak memory of this process.
        start = time.perf_counter()
        done = subprocess.run(
            ["/usr/bin/time", "--format", "%M", *command],
            stdin=into,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        took = time.perf_counter() - start
    if done.returncode:
        raise Failed(f"{' '.join(command[:4])} …: {done.stderr.strip()}")
    *lines, most = done.stderr.splitlines()
    return took, int(most) * 1024, lines


def output(command, stdin=None):
    """Returns the output of a program. The program must succeed."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command[:4])} …: {done.stderr.strip()}")
    return done.stdout


def until(what, is_so, patience=60):
    deadline = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > deadline:
            raise Failed(f"timed out waiting until {what}")
        time.sleep(0.01)


def memory(pid):
    """Returns the resident memory of a process in bytes."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024


def worked(pid):
    """Returns the processor time of a process in seconds."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Process:
    """A process that runs until it is stopped together with its children."""

    def __init__(self, command, log, **options):
        self.log = log
        with open(log, "ab") as out:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, **options
            )

    @property
    def pid(self):
        return self.child.pid

    def is_running(self):
        return self.child.poll() is None

    def wait(self, patience=600):
        """Waits for the process to exit successfully."""
        if code := self.child.wait(timeout=patience):
            with open(self.log) as log:
                raise Failed(f"{self.child.args[0]} exited with {code}: {log.read()[-500:]}")

    def stop(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_running():
                return
            os.killpg(self.child.pid, how)
            try:
                self.child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                pass


def all_at_once(commands, log):
    """Runs the commands in parallel and waits for all of them."""
    started = [Process(command, log) for command in commands]
    try:
        for one in started:
            one.wait()
    finally:
        for one in started:
            one.stop()
