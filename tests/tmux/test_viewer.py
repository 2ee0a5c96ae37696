"""`attach --all`: every agent in tiles, read-only unless asked, and nothing of it is left or mistaken."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fleet.host.tmux.client import resolve_socket
from tests.tmux.project import ENGINE, Project, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

AGENT = '[[agent]]\nname = "{}"\nkind = "persistent"\nprompt = "go"\nbackend = "cat"\n'
CAT = '[backend.cat]\nprompt_delivery = "exec"\nbin = "cat"\n'
NAMES = ("ann", "bob", "cid")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    p = Project(tmp_path_factory.mktemp("view") / "project", CAT + "".join(AGENT.format(n) for n in NAMES))
    p.agents("up", "--no-wait")
    until(lambda: all(p.pid(n) for n in NAMES))
    yield p
    p.tear_down()


class Person:
    """Somebody at a terminal of that size who runs `attach` and reads what it shows."""

    def __init__(self, p: Project, *words: str, size: tuple[int, int]) -> None:
        argv = [sys.executable, str(ENGINE / "agents.py"), "attach", *words, "--config", str(p.config)]
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, p.env({"TERM": "xterm", "COLUMNS": str(size[0]), "LINES": str(size[1])}))
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.seen = b""
        self.ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self.terminal, 4096):
                self.seen += data
        self.ended.set()

    def press(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def leave(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@contextmanager
def person(p: Project, *words: str, size: tuple[int, int] = (160, 50)):
    one = Person(p, *words, size=size)
    try:
        yield one
    finally:
        one.leave()


def clients(p: Project) -> dict[str, str]:
    """Terminals on the fleet's server: session to read-only or not."""
    form = "#{client_control_mode} #{session_name} #{client_readonly}"
    rows = p.tmux("list-clients", "-F", form).splitlines()
    return {name.removeprefix(p.prefix): ro for control, name, ro in map(str.split, rows) if control == "0"}


def viewers(p: Project) -> list[str]:
    """The sockets of viewers of this fleet."""
    folder = Path(resolve_socket(p.socket)).parent
    return [path.name for path in folder.glob(f"{p.socket}-view-*")]


def held(p: Project) -> list[str]:
    """Agents whose window does not follow its terminals."""
    return [n for n in NAMES if p.tmux("show-options", "-w", "-t", f"={p.prefix}{n}:", "window-size")]


def sizes(p: Project) -> set[str]:
    rows = p.tmux("list-windows", "-a", "-F", "#{session_name} #{window_width}x#{window_height}").splitlines()
    return {row.split()[1] for row in rows if row.split()[0].removeprefix(p.prefix) in NAMES}


def test_every_agent_is_shown_read_only_and_the_view_ends_with_its_viewer(fleet):
    p = fleet
    before = {row["name"]: row["pid"] for row in p.json("status")["agents"]}
    whole = sizes(p)
    with person(p, "--all") as one:
        until(lambda: clients(p) == dict.fromkeys(NAMES, "1"))
        assert sizes(p) == whole
        until(lambda: all(name.encode() in one.seen for name in NAMES))
        assert len(viewers(p)) == 1
        assert p.tmux("list-sessions", "-F", "#{session_name}").count("view") == 0
        facts = p.json("status")
        assert {row["name"]: row["pid"] for row in facts["agents"]} == before
        assert not [x for x in facts["problems"] if "view" in x]
        one.press("hello\r")  # nothing of it reaches an agent
        one.press("z")
        until(lambda: b"read-only" in one.seen)
        assert "hello" not in "".join(p.tmux("capture-pane", "-p", "-t", f"={p.prefix}{n}:") for n in NAMES)
        one.press("q")
        assert one.ended.wait(30)
    until(lambda: not clients(p))
    until(lambda: not viewers(p))
    until(lambda: not held(p))
    assert sizes(p) == whole


def test_with_write_what_is_typed_reaches_the_chosen_agent_alone(fleet):
    p = fleet
    with person(p, "--all", "--write") as one:
        until(lambda: clients(p) == dict.fromkeys(NAMES, "0"))
        one.press("typed-by-a-person\r")

        def holds() -> list[str]:
            shown = {n: p.tmux("capture-pane", "-p", "-t", f"={p.prefix}{n}:") for n in NAMES}
            return [n for n, text in shown.items() if "typed-by-a-person" in text]

        until(holds)
        assert len(holds()) == 1
    until(lambda: not clients(p))  # the viewer was killed and its terminal closed: the view ends too
    with person(p, "--all") as one:  # the next one tidies up
        until(lambda: len(clients(p)) == len(NAMES))
        assert len(viewers(p)) == 1
        one.press("q")
        assert one.ended.wait(30)


def test_more_agents_than_fit_get_more_windows_and_one_that_is_back_is_shown_again(fleet):
    p = fleet
    with person(p, "--all", size=(80, 12)) as one:  # room for two
        until(lambda: set(clients(p)) == set(NAMES))
        p.agents("restart", "bob", "--no-wait", code=None)
        until(lambda: set(clients(p)) == set(NAMES) and p.pid("bob"))
        one.press("n")
        one.press("q")
        assert one.ended.wait(30)
    until(lambda: not viewers(p))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["--all", "ann"], 2),
        (["ann", "--write"], 2),
        (["--all", "--write", "-r"], 2),
        (["--all", "--print"], 2),
        (["--all"], 1),  # no terminal
    ],
)
def test_what_cannot_be_shown_is_said(fleet, words, code):
    assert fleet.agents("attach", *words, code=code).startswith("error: ")


def test_down_ends_the_view_with_the_fleet(tmp_path):
    p = Project(tmp_path / "project", CAT + AGENT.format("ann"))
    try:
        p.agents("up", "--no-wait")
        until(lambda: p.pid("ann"))
        with person(p, "--all") as one:
            until(lambda: clients(p) == {"ann": "1"})
            p.agents("down")
            assert one.ended.wait(60)
        until(lambda: not viewers(p))
        with person(p, "--all") as one:
            until(lambda: b"no agent is running" in one.seen)
    finally:
        p.tear_down()
