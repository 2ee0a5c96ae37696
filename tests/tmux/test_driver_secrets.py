"""Secrets reach the agent they are for and nothing else: no other agent, file, argument list or output."""

from __future__ import annotations

import os
import signal
from base64 import b64encode
from pathlib import Path

import pytest

from fleet.world import procfs
from tests.tmux.project import Project, scripted, until

pytestmark = pytest.mark.tmux

# By name, as a person would have them in the shell that runs `up`.
CANARIES = {
    "ANTHROPIC_API_KEY": "sk-ant-canary-for-a-0001",
    "B_ONLY_TOKEN": "canary-for-b-only-0002",
    "NOBODYS_PASSWORD": "canary-for-nobody-0003",
}
FILED = "canary-from-a-file-0004"


def environ(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode()


@pytest.fixture
def secretive(make) -> Project:
    p = make()
    (p.root / "b.env").write_text(f"FILED_TOKEN={FILED}\n")
    a = scripted(p, "a", more='env_pass = ["ANTHROPIC_API_KEY"]')
    b = scripted(p, "b", more='env_pass = ["B_ONLY_*"]\nenv_file = "b.env"')
    p.write(a + b + scripted(p, "c") + '[[service]]\nname = "s"\ncommand = "sleep 1000"\n')
    p.agents("up", env=CANARIES)
    return p


def sees(p: Project, name: str) -> set[str]:
    """Which canaries a process of the project could read in its environment."""
    text = environ(p.pid(name))
    return {value for value in (*CANARIES.values(), FILED) if value in text}


def everywhere(p: Project) -> dict[str, bytes]:
    """Everything that others can read: files of ours, argument lists, what verbs print."""
    found = {str(f): f.read_bytes() for f in p.log_dir.rglob("*") if f.is_file()}
    for pid in procfs.table():
        try:
            found[f"cmdline of {pid}"] = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
    for verb in (
        ("status",),
        ("status", "--json"),
        ("explain", "a"),
        ("events",),
        ("validate", "--resolved"),
    ):
        found[" ".join(verb)] = p.agents(*verb, env=CANARIES).encode()
    found["doctor"] = p.agents("doctor", code=None, env=CANARIES).encode()
    return found


def test_each_agent_sees_its_own_secrets_also_after_a_heal_by_the_watchdog(secretive):
    """E1, E3, T12: the watchdog hands out what `up` was given, each to its own."""
    p = secretive
    mine = {"a": {CANARIES["ANTHROPIC_API_KEY"]}, "b": {CANARIES["B_ONLY_TOKEN"], FILED}}
    mine |= {"c": set(), "s": set()}
    assert {name: sees(p, name) for name in mine} == mine
    old = {name: p.pid(name) for name in mine}
    for pid in old.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(p.pid(name) not in {0, pid} for name, pid in old.items()))
    until(lambda: {name: sees(p, name) for name in mine} == mine)  # a shell runs first, for a moment
    p.agents("down")


def test_no_secret_is_in_any_file_argument_list_or_output(secretive):
    """I40, E2: also not in another spelling."""
    p = secretive
    os.kill(p.pid("c"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "c"))
    said = everywhere(p)
    for secret in (*CANARIES.values(), FILED):
        for form in (secret.encode(), b64encode(secret.encode())):
            assert not [place for place, text in said.items() if form in text], secret


def test_what_we_write_is_for_us_alone_whatever_the_umask(make):
    """I41."""
    p = make()
    p.write(scripted(p, "a"))
    old = os.umask(0)
    try:
        p.agents("up")
    finally:
        os.umask(old)
    os.kill(p.pid("a"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"))
    ours = [f for f in (p.log_dir, *p.log_dir.rglob("*")) if "scripted" not in f.parent.parts]
    assert not [(f, oct(f.stat().st_mode)) for f in ours if f.stat().st_mode & 0o077]
