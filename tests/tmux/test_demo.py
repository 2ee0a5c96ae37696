"""The tour, and the live view on a real terminal: it tells, hands over, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleet.host import procfs
from fleet.host.tmux.client import resolve_socket
from tests.tmux.project import ENGINE, until

pytestmark = pytest.mark.tmux

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()][A-Z0-9]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


def environment(tmp_path):
    gone = {"TMUX", "TMUX_PANE", "NO_COLOR"}
    env = {k: v for k, v in os.environ.items() if k not in gone}
    return {**env, "TMPDIR": str(tmp_path), "TERM": "xterm-256color"}


def left_over(tmp_path):
    """Processes and files of a tour in this directory."""
    processes = []
    for pid in procfs.table():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"AO_PROJECT_DIR={tmp_path}".encode() in environ and status != "Z":
            processes.append(pid)
    return [*processes, *tmp_path.glob("fleet-demo-*")]


def prefix_of(tmp_path):
    config = next(tmp_path.glob("fleet-demo-*/builder-adversary/offline.toml"))
    return re.search(r'session_prefix = "(.*)-"', config.read_text())[1]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_tour_without_a_terminal_tells_the_story_and_cleans_up_when_it_is_interrupted(tmp_path, signum):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children ignore it else
    child = subprocess.Popen(
        [sys.executable, str(ENGINE / "agents.py"), "demo"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    with child:
        said = []
        for line in child.stdout:
            said.append(line)
            if "works." in line:
                break
        socket = resolve_socket(f"ao-{prefix_of(tmp_path)}")
        assert os.path.exists(socket)
        child.send_signal(signum)
        said += child.stdout.readlines()
    assert child.returncode in {130, 128 + signum}
    assert "builder starts in a terminal of its own" in "".join(said)
    assert "Traceback" not in "".join(said)
    assert said[-1] == "cleaning up\n"
    assert left_over(tmp_path) == []
    assert not os.path.exists(socket)


class Person:
    """Somebody at a terminal."""

    def __init__(self, fd):
        self.fd = fd
        self.text = ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while True:
            try:
                if select.select([self.fd], [], [], 0.2)[0]:
                    self.text += os.read(self.fd, 65536).decode("utf-8", "replace")
            except (OSError, ValueError):
                return

    def press(self, keys):
        self.text = ""
        os.write(self.fd, keys)

    def sees(self, words):
        until(lambda: words in ESCAPES.sub("", self.text), 60)


@contextmanager
def terminal(tmp_path, *words):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        argv = [sys.executable, str(ENGINE / "agents.py"), *words]
        os.execve(argv[0], argv, environment(tmp_path))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        yield pid, Person(fd)
    finally:
        if os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        os.close(fd)


def test_on_a_terminal_it_opens_the_live_view_from_which_one_can_attach_and_come_back(tmp_path):
    with terminal(tmp_path, "demo") as (pid, person):
        person.sees("what is happening")
        person.sees("WORKING")
        person.press(b"\r")
        person.sees("[demo-")  # the status line of the agent's own tmux
        person.press(b"\x02d")
        person.sees("what is happening")
        person.press(b"q")
        person.sees("cleaning up")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert left_over(tmp_path) == []
