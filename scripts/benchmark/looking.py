"""The dashboard, on a terminal of its own: what it costs, and how soon it answers."""

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

#: What ends each frame.
END = b"\x1b[?2026l"

#: How long a frame is waited for.
PATIENCE = 10


class Screen:
    """A terminal of 200x60 on which a board is shown, once it has been read."""

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
        # Only what differs is written, unless a whole frame is asked for.
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
        """Waits until something is written to the terminal; each second a key is pressed."""
        start, pressed = time.monotonic(), 0
        deadline = start + PATIENCE * 6
        while not pattern.search(self.written):
            if time.monotonic() > deadline:
                raise Failed(f"waited in vain for {pattern.pattern}: {self.written[-300:]}")
            self.read(1)
            if key and time.monotonic() - start > pressed + 1:
                os.write(self.main, key)
                pressed += 1

    def rest(self, seconds):
        """Reads what is written meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)
        self.written = b""

    def press(self, key, pattern):
        """Returns how long it takes until a key is answered, in milliseconds."""
        self.written = b""
        start = time.perf_counter()
        os.write(self.main, key)
        self.shows(pattern)
        return (time.perf_counter() - start) * 1000


def nanoseconds(pid):
    """Returns for how long all threads of a process have had a processor."""
    tasks = os.listdir(f"/proc/{pid}/task")
    times = [open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0] for task in tasks]
    return sum(map(int, times))


@row("dash-idle", "processor, dash of 1,000 jobs that nothing happens to, Redis", "below 0.5 %", ("most", 0.5))
def dash_idle(bench):
    url = bench.redis.url("dash-idle")
    jobs.post(bench, url, 1_000)
    with Screen(bench, url, 1_000) as screen:
        screen.rest(3)
        before, start = worked(screen.pid), time.monotonic()
        screen.rest(bench.pick(30, 10))
        share = (worked(screen.pid) - before) / (time.monotonic() - start)
    return Figure(share * 100, unit="%")


@row("dash-frame", "a key and its frame, 200x60 of 100,000 jobs, Redis", "2 ms of a processor", ("most", 2))
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
    note = f"answered within {statistics.median(took):.1f} ms; memory {most:.0f} MB, asked 60 MB"
    return Figure(each, note=note, is_all_else_met=most < 60, samples={"took": took})


@row("dash-key", "a key while 1,000 events a second arrive, Redis", "50 ms", ("most", 50))
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
                # It is told nowhere else.
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
