"""A message is delivered as text or refused with the reason; never run as a command, never in others' way."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

# A CLI with the ways of real ones: ! runs what follows, / is a command, and some letters are not shown.
FACE = """
shell = "!"
commands = "/"
hides = "Qï漢"
spinner = "✢✳"
user = "❯ "
said = "● "
notice = "▲ "
working = "{glyph} {text}… ({elapsed}s · esc to interrupt)"
open = "{rule}"
composer = "❯ "
close = "{rule}"
footer = ["  ? for shortcuts"]
footer_working = ["  esc to interrupt"]
"""
BACKEND = r"""
[backend.quirky]
inherits = "scripted"
clear_keys = ["C-u"]
screen = { composer = '[❯!] ?(?P<draft>.*)$', commands = '!' }
patterns = [{ name = "prompt", state = "idle", region = "composer", re = '^[❯!]' }]
[[backend.quirky.texts]]
name = "command"
re = '\A[!/]'
treat = "blank-before"
by = "both"
[[backend.quirky.texts]]
name = "forbidden"
re = 'forbidden'
treat = "refuse"
by = "both"
why = "this program eats it"
"""


def declare(p: Project, *agents: tuple[str, str]) -> None:
    (p.root / "face.toml").write_text(FACE, encoding="utf-8")
    rows = "".join(
        f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "quirky"\n'
        f"prompt = {json.dumps(prompt)}\n"
        f'env = {{ AO_SCRIPT_FACE = "{p.root}/face.toml" }}\n'
        for name, prompt in agents
    )
    p.write(BACKEND + rows)


def send(p: Project, text: str, seconds: float = 30) -> tuple[int, str]:
    """By standard input: an argument cannot hold every text."""
    timeout = f"{patience(seconds):.0f}"
    command = [sys.executable, str(ENGINE / "agents.py"), "send", "one", "-", "--timeout", timeout]
    done = subprocess.run(
        [*command, "--config", str(p.config)], env=p.env(), input=text, capture_output=True, text=True,
        timeout=patience(120), check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def heard(p: Project, name: str = "one") -> list[tuple[str, str]]:
    return [(m["kind"], m["text"].strip()) for m in p.received(name)]


def test_texts_that_a_cli_takes_otherwise_are_delivered_or_refused_and_never_in_the_way(make):
    p = make()
    declare(p, ("one", "Begin."))
    p.agents("up")
    expected = [("kickoff", "Begin.")]
    for text, says in [
        ("!touch ran", ""),
        ("/nope is no command", ""),
        ("naïve 漢字 that its screen does not show", ""),
        ("a Q that its screen does not show", "taken out again"),
        ("after the one that was taken out", ""),
        ("\n".join(f"line {n} with a Q" for n in range(20)), "taken out again"),
        ("after the long one that was taken out", ""),
        ("one line\n\nand another\n\n\n  after a gap", ""),
        ("a bell\x07 and more", "U+0007"),
        ("an escape\x1b[201~\r!touch ran", "U+001B"),
        ("the forbidden word", "this program eats it"),
        ("👍🏽 👩\u200d💻 zero\u200bwidth \u200fमस्ते e\u0301", ""),
        ("the last one", ""),
    ]:
        code, said = send(p, text)
        assert code == (1 if says else 0), said
        assert says in said
        expected += [] if says else [("message", text)]
        assert heard(p) == expected


def test_a_composer_left_in_its_shell_mode_is_not_typed_into(make):
    p = make()
    declare(p, ("one", "Begin."))
    p.agents("up")
    pane = f"={p.prefix}one:"
    p.tmux("send-keys", "-t", pane, "!")
    until(lambda: "\n! " in p.tmux("capture-pane", "-p", "-N", "-t", pane))
    code, said = send(p, "rm -rf everything", seconds=3)
    assert code == 1, said
    assert "commands" in said
    p.tmux("send-keys", "-t", pane, "BSpace")
    code, said = send(p, "a message again")
    assert code == 0, said
    assert heard(p) == [("kickoff", "Begin."), ("message", "a message again")]


def test_a_prompt_that_would_be_a_command_is_a_prompt_and_one_that_cannot_be_said_is_pointed_at(make):
    p = make()
    declare(p, ("one", "!touch ran"), ("two", "a forbidden word"))
    p.agents("up")
    until(lambda: heard(p, "one") and heard(p, "two"))
    assert heard(p, "one") == [("kickoff", "!touch ran")]
    pointer = f"Read {p.log_dir}/state/kickoff-{p.prefix}two.txt and follow it."
    assert heard(p, "two") == [("kickoff", pointer)]
    assert not (p.root / "ran").exists()


# It throws away whatever is typed while it comes up, as programs do that take over a terminal.
SLOW = """
import sys, termios, time, tty
tty.setcbreak(0)
time.sleep(1.5)
termios.tcflush(0, termios.TCIFLUSH)
print("ready", flush=True)
with open(sys.argv[1], "ab", 0) as file:
    while True:
        file.write(sys.stdin.buffer.raw.read(4096))
"""


def test_a_program_that_cannot_be_known_as_idle_is_not_typed_to_before_it_had_its_time(make):
    """R047, R062: neither while it comes up, nor while its preamble runs."""
    p = make()
    (p.root / "slow.py").write_text(SLOW)
    got = p.root / "got"
    p.write(
        f'[backend.slow]\nbin = "{sys.executable}"\nflags = "{p.root}/slow.py {got}"\n'
        'prompt_delivery = "ping"\nconnect_delay = 3\npreamble = "sleep 2"\n'
        '[[agent]]\nname = "one"\nkind = "persistent"\nbackend = "slow"\nprompt = "the whole prompt"\n'
    )
    p.agents("up")
    until(lambda: p.events("message.confirmed", "one"))
    until(lambda: got.exists() and b"the whole prompt" in got.read_bytes())
