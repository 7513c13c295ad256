"""The dashboard on a pseudo-terminal: its cost and its response time."""

import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import termios
import threading
import time

import jobs
from bench import Figure, row
from processes import Failed, memory, worked

#: The end of each frame.
END = b"\x1b[?2026l"

#: Seconds to wait for a frame.
PATIENCE = 10


class Screen:
    """A terminal of 200x60 that shows a board; ready when the board has been read."""

    def __init__(self, bench, url, count):
        bench.needs("dash")
        self.written = b""
        main, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        self.main = main
        command = bench.ours("--board", url, "dash")
        env = os.environ | {"TERM": "xterm-256color"}
        self.child = subprocess.Popen(command, stdin=screen, stdout=screen, stderr=screen, env=env)
        os.close(screen)
        # Ctrl-L requests a whole frame; otherwise dash writes only the differences.
        self.shows(re.compile(rb"1/%d\b" % count), b"\x0c")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()
        os.close(self.main)

    @property
    def pid(self):
        return self.child.pid

    def read(self, patience):
        if select.select([self.main], [], [], patience)[0]:
            self.written += os.read(self.main, 1 << 16)
            return True
        return False

    def shows(self, pattern, key=b""):
        """Waits until the output matches; presses the key once a second."""
        start, pressed = time.monotonic(), 0
        deadline = start + PATIENCE * 6
        while not pattern.search(self.written):
            if time.monotonic() > deadline:
                raise Failed(f"timed out waiting for {pattern.pattern}: {self.written[-300:]}")
            self.read(1)
            if key and time.monotonic() - start > pressed + 1:
                os.write(self.main, key)
                pressed += 1

    def rest(self, seconds):
        """Discards the output of the next seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)
        self.written = b""

    def press(self, key, pattern):
        """Returns the milliseconds from a key press to the expected output."""
        self.written = b""
        start = time.perf_counter()
        os.write(self.main, key)
        self.shows(pattern)
        return (time.perf_counter() - start) * 1000


def nanoseconds(pid):
    """Returns the processor time of all threads of a process in nanoseconds."""
    tasks = os.listdir(f"/proc/{pid}/task")
    times = [open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0] for task in tasks]
    return sum(map(int, times))


@row("dash-idle", "processor, idle dash of 1,000 jobs, Redis", "below 0.5 %", ("most", 0.5))
def dash_idle(bench):
    url = bench.redis.url("dash-idle")
    jobs.post(bench, url, 1_000)
    with Screen(bench, url, 1_000) as screen:
        screen.rest(3)
        before, start = worked(screen.pid), time.monotonic()
        screen.rest(bench.pick(30, 10))
        share = (worked(screen.pid) - before) / (time.monotonic() - start)
    return Figure(share * 100, unit="%")


@row("dash-frame", "processor, dash, a key press, 200x60, 100,000 jobs, Redis", "2 ms or less", ("most", 2))
def dash_frame(bench):
    url = bench.redis.url("dash-frame")
    jobs.post(bench, url, 100_000)
    end = re.compile(re.escape(END))
    with Screen(bench, url, 100_000) as screen:
        screen.rest(5)
        took = []
        before = nanoseconds(screen.pid)
        for _ in range(bench.pick(500, 100)):
            took.append(screen.press(b"j", end))
        each = (nanoseconds(screen.pid) - before) / len(took) / 1e6
        most = memory(screen.pid) / 1e6
    note = f"response in {statistics.median(took):.1f} ms; memory {most:.0f} MB, target 60 MB"
    return Figure(each, note=note, is_all_else_met=most < 60, samples={"took": took})


@row("dash-key", "dash, a key press at 1,000 events a second, Redis", "50 ms or less", ("most", 50))
def dash_key(bench):
    url, count = bench.redis.url("dash-key"), 1_000
    jobs.post(bench, url, count)
    command = bench.ours("--board", url, "post", "-q", "--from", "-")
    poster = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    ends = threading.Event()

    def flood():
        start, posted = time.monotonic(), 0
        while not ends.wait(0.01):
            due = int((time.monotonic() - start) * 1_000)
            os.write(poster.stdin.fileno(), b'{"name":"flood"}\n' * (due - posted))
            posted = due

    with Screen(bench, url, count) as screen:
        flooding = threading.Thread(target=flood)
        flooding.start()
        took = []
        try:
            screen.rest(2)
            for _ in range(bench.pick(200, 50)):
                # This word appears only in the help.
                took.append(screen.press(b"?", re.compile(b"suspend")))
                os.write(screen.main, b"?")
                screen.rest(0.05)
        finally:
            ends.set()
            flooding.join()
            poster.stdin.close()
            poster.wait()
    late = statistics.quantiles(took, n=100)[98]
    return Figure(late, note=f"p99; p50 {statistics.median(took):.1f} ms", samples={"took": took})
