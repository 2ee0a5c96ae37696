"""Never a byte where it does not belong: not into a person's draft, not into a shell."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project, gated, scripted, until

pytestmark = pytest.mark.tmux


@contextmanager
def person(p: Project, name: str):
    """Somebody with a terminal attached to an agent; what they type is what is yielded to."""
    argv = ["tmux", "-L", p.socket, "attach", "-t", f"={p.prefix}{name}:"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, p.env({"TERM": "xterm"}))
    reader = threading.Thread(target=_drain, args=(terminal,), daemon=True)
    reader.start()
    until(lambda: str(pid) in p.tmux("list-clients", "-F", "#{client_pid}"))
    try:
        yield lambda text: os.write(terminal, text.encode())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        reader.join(patience(10))
        os.close(terminal)


def _drain(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 65536):
            pass


def send(p: Project, name: str, text: str, seconds: float = 60) -> subprocess.Popen[str]:
    timeout = f"{patience(seconds):.0f}"
    command = [sys.executable, str(ENGINE / "agents.py"), "send", name, text, "--timeout", timeout]
    return subprocess.Popen(
        [*command, "--config", str(p.config)],
        env=p.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def screen(p: Project, name: str) -> str:
    return p.tmux("capture-pane", "-p", "-t", f"={p.prefix}{name}:")


def messages(p: Project, name: str) -> list[str]:
    return [m["text"] for m in p.received(name) if m["kind"] not in {"kickoff", "bytes"}]


def test_a_persons_draft_is_never_touched_and_our_words_come_after_it(make):
    """I12, T31."""
    p = make()
    p.write(scripted(p, "one"))
    p.agents("up")
    with person(p, "one") as types:
        types("a thought not yet")
        until(lambda: "a thought not yet" in screen(p, "one"))
        ours = send(p, "one", "our words")
        until(lambda: any(w in p.row("one")["reason"] for w in ("unsent text", "typing there")))
        types(" finished")
        until(lambda: "a thought not yet finished" in screen(p, "one"))
        assert messages(p, "one") == []
        time.sleep(0.2)  # as fingers do: an Enter in the same breath would be a line break
        types("\r")
        until(lambda: messages(p, "one") == ["a thought not yet finished"])
    said = ours.communicate(timeout=patience(90))[0]
    assert ours.returncode == 0, said
    assert messages(p, "one") == ["a thought not yet finished", "our words"]


def test_what_a_person_adds_to_our_words_is_not_submitted_for_them(make):
    """I12: they typed between our text and our Enter."""
    p = make()
    p.write(scripted(p, "one"))
    p.agents("up", "one")
    with gated(p, "paste.done") as gate:
        ours = send(p, "one", "our words")
        until(lambda: Path(f"{gate}.reached").exists())
        until(lambda: "our words" in screen(p, "one"))
        with person(p, "one") as types:
            types(" and mine")
            until(lambda: "our words and mine" in screen(p, "one"))
            gate.touch()
            said = ours.communicate(timeout=patience(90))[0]
            assert ours.returncode == 1, said
            assert "something else" in said
            assert messages(p, "one") == []
            assert "our words and mine" in screen(p, "one")


@pytest.mark.parametrize("point", ["paste.begun", "press.begun"])
def test_words_are_said_once_although_tmux_did_not_answer_in_time(make, point):
    """I11: whether it happened is unknown then, and only the screen tells."""
    p = make()
    p.write(scripted(p, "one"))
    p.agents("up", "one")
    server = int(p.tmux("display-message", "-p", "#{pid}"))
    with gated(p, point) as gate:
        ours = send(p, "one", "our words")
        until(lambda: Path(f"{gate}.reached").exists())
        os.kill(server, signal.SIGSTOP)
        try:
            gate.touch()
            until(lambda: p.events("action.failed", "one"))
        finally:
            os.kill(server, signal.SIGCONT)
        said = ours.communicate(timeout=patience(90))[0]
        assert ours.returncode == 0, said
        assert messages(p, "one") == ["our words"]


# A shell that remembers what it was given: not one byte may arrive.
SHELL = """#!/bin/sh
stty -echo -icanon min 1
printf 'a-shell$ '
exec dd of={file} bs=1 2>/dev/null
"""
LEAVES = """
[[on]]
kickoff = "."
steps = [{{ once = "leave", steps = [{{ wait_file = "leave" }}, {{ become = "{shell}" }}] }}]
"""


@pytest.mark.parametrize("point", ["paste.begun", "press.begun"])
def test_nothing_is_typed_into_a_shell_that_the_agent_left_behind(make, point):
    """I8: the agent is gone between the decision and the keystroke."""
    p = make()
    shell, got = p.root / "bin" / "sh", p.root / "got"
    shell.parent.mkdir()
    shell.write_text(SHELL.format(file=got))
    shell.chmod(0o700)
    p.write(scripted(p, "one", LEAVES.format(shell=shell)))
    p.agents("up", "one")
    with gated(p, point) as gate:
        ours = send(p, "one", "rm -rf everything")
        until(lambda: Path(f"{gate}.reached").exists())
        (p.root / "leave").touch()
        until(lambda: "a-shell$" in screen(p, "one"))
        gate.touch()
        said = ours.communicate(timeout=patience(90))[0]  # by then the agent was brought back
        assert ours.returncode == 0, said
        assert p.events("agent.mismatched", "one")
        assert messages(p, "one") == ["rm -rf everything"]
    assert not got.exists() or got.read_bytes() == b""
