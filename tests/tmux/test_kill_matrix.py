"""The watchdog is killed at every point of every effect: the next one repeats nothing and loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.core.memory import Message
from fleet.core.queue import tail_of
from fleet.core.words import MessageKind
from fleet.host import procfs
from fleet.host.disk import RealDisk
from fleet.host.locks import nudge
from fleet.store.outbox import Outbox
from tests.deadlines import patience
from tests.tmux.project import Project, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

MORTAL = Path(__file__).with_name("mortal.py")
STARTS = ("start.begun", "start.remove", "start.create", "start.created")
TYPING = ("paste.begun", "paste", "paste.done", "press.begun", "press", "press.done")
STOPS = ("signal.begun", "signal", "signal.done", "remove.begun", "remove", "remove.done")
DISK = tuple(f"disk:{n}" for n in (1, 2, 3, 5, 8, 13))

WEDGES = """
start = [{ spawn = ["setsid", "nohup"] }]
[[on]]
message = "break"
steps = [{ fatal = true }]
"""


class Matrix:
    """One project with an agent for each point, so that no death makes the next one wait."""

    def __init__(self, root: Path, points: tuple[str, ...], script: str) -> None:
        self.names = {point: f"a{n}" for n, point in enumerate(points)}
        self.project = p = Project(root, "")
        path = p.script("all", script)
        p.write(
            "".join(
                f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "scripted"\n'
                f'prompt = "Begin."\nenv = {{ AO_SCRIPT = "{path}" }}\n'
                for name in self.names.values()
            )
        )
        p.agents("up", *self.names.values())
        self.dog: subprocess.Popen[bytes] | None = None

    def watch(self, point: str = "none") -> None:
        """The next watchdog, which will die there. Returns once it looks."""
        p = self.project
        self.end()
        seen = len(p.events("watchdog.started"))
        command = [sys.executable, str(MORTAL), point, "watchdog", "--config", str(p.config)]
        with open(p.root / "mortal.log", "ab") as log:
            self.dog = subprocess.Popen(command, env=p.env(), stdout=log, stderr=log)
        until(lambda: len(p.events("watchdog.started")) > seen or self.dog.poll() is not None)

    def all_ready(self) -> None:
        """A watchdog has seen every agent at its prompt."""
        until(lambda: {e["agent"] for e in self.project.events("agent.ready")} >= set(self.names.values()))

    def died(self) -> bool:
        """It was killed where it should be, and not by anything else."""
        assert self.dog is not None
        return self.dog.wait(60) == -signal.SIGKILL

    def end(self) -> None:
        """Whoever watches now is killed too: nobody ever says goodbye in this file."""
        if self.dog is not None and self.dog.poll() is None:
            self.dog.kill()
            self.dog.wait()

    def pid(self, name: str) -> int:
        return self.project.pid(name)

    def kickoffs(self, name: str) -> int:
        return sum(m["kind"] == "kickoff" for m in self.project.received(name))

    def runs(self, name: str) -> set[str]:
        """Run ids that live processes of this agent carry."""
        mark = f"AO_SESSION={self.project.prefix}{name}".encode()
        found = set()
        for pid in procfs.table():
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environ:
                found.add(procfs.run_of(pid))
        return found - {""}

    def ask(self, name: str, text: str) -> None:
        """As `send` does, without waiting: it may be the last thing this watchdog does."""
        state = self.project.log_dir / "state"
        outbox = Outbox(RealDisk(), str(state), time.time)
        outbox.put(name, Message(outbox.new_id(), MessageKind.SEND, text, tail=tail_of(text)))
        nudge(str(state))

    def sound(self, point: str) -> None:
        """One session and one process set for each."""
        p = self.project
        sessions = p.tmux("list-sessions", "-F", "#{session_name}").split()
        ours = sorted(s for s in sessions if s.startswith(p.prefix) and not s.endswith("-watchdog"))
        assert ours == sorted(f"{p.prefix}{n}" for n in self.names.values()), point
        for name in self.names.values():
            assert len(self.runs(name)) == 1, (point, name)


@pytest.fixture
def matrix(tmp_path) -> Iterator:
    made: list[Matrix] = []

    def build(points: tuple[str, ...], script: str = "") -> Matrix:
        made.append(Matrix(tmp_path / "project", points, script))
        return made[0]

    yield build
    for one in made:
        one.end()
        one.project.tear_down()


def test_a_start_cut_short_at_any_point_is_a_start_and_only_one(matrix):
    """I1, I20, I22: started once, whether the effect had happened or not."""
    m = matrix(STARTS)
    for point, name in m.names.items():
        m.watch(point)
        m.all_ready()
        os.kill(m.pid(name), signal.SIGKILL)
        assert m.died(), point
        m.watch()
        until(lambda n=name: m.kickoffs(n) == 2 and m.project.events("agent.ready", n)[1:])
        m.sound(point)
    assert {m.kickoffs(n) for n in m.names.values()} == {2}


def test_typing_cut_short_at_any_point_is_typed_once_and_confirmed(matrix):
    """I11, I20: a message is neither lost nor said twice."""
    m = matrix(TYPING)
    for point, name in m.names.items():
        m.watch(point)
        words = f"words at {point}"
        command = [sys.executable, "agents.py", "send", name, words, "--timeout", f"{patience(90):.0f}"]
        send = subprocess.Popen(
            [*command, "--config", str(m.project.config)],
            cwd=MORTAL.parents[2],
            env=m.project.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert m.died(), point
        m.watch()
        said = send.communicate(timeout=patience(120))[0].decode()
        assert send.returncode == 0, (point, said)
        heard = [x["text"] for x in m.project.received(name) if x["kind"] != "kickoff"]
        assert heard == [words], point
        m.sound(point)
    assert {m.kickoffs(n) for n in m.names.values()} == {1}


def test_a_stop_cut_short_at_any_point_is_finished_and_leaves_nobody(matrix):
    """I1, I29: the wedged run is gone with all its children, the new one was started once."""
    m = matrix(STOPS, WEDGES)
    for point, name in m.names.items():
        m.watch(point)
        m.all_ready()
        m.ask(name, "break")
        assert m.died(), point
        m.watch()
        until(lambda n=name: m.kickoffs(n) == 2 and len(m.runs(n)) == 1, 60)
        m.sound(point)
    assert {m.kickoffs(n) for n in m.names.values()} == {2}


def test_a_heal_cut_short_before_any_change_to_a_file_is_a_heal_and_only_one(matrix):
    """I20: whatever of the record was written, the world is looked at again."""
    m = matrix(DISK)
    m.watch()
    m.all_ready()
    for point, name in m.names.items():
        m.end()
        os.kill(m.pid(name), signal.SIGKILL)
        m.watch(point)
        assert m.died(), point
        m.watch()
        until(lambda n=name: m.kickoffs(n) == 2 and len(m.runs(n)) == 1)
        m.sound(point)
    assert {m.kickoffs(n) for n in m.names.values()} == {2}
