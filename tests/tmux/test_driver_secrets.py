"""Secrets reach the agent they are for and nothing else: no other agent, file, argument list or output."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.host import procfs
from tests.tmux.project import Project, scripted, until

pytestmark = pytest.mark.tmux

# By name, as a person would have them in the shell that runs `up`.
CANARIES = {
    "ANTHROPIC_API_KEY": "sk-ant-canary-for-a-0001",
    "B_ONLY_TOKEN": "canary-for-b-only-0002",
    "NOBODYS_PASSWORD": "canary-for-nobody-0003",
}
FILED = "canary-from-a-file-0004"
GIVEN_UP = "canary-that-nobody-holds-any-more-0005"


def environ(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode()


SHARES = {
    "a": {CANARIES["ANTHROPIC_API_KEY"]},
    "b": {CANARIES["B_ONLY_TOKEN"], FILED},
    "c": set(),
    "s": set(),
}


def declare(p: Project) -> None:
    (p.root / "b.env").write_text(f"FILED_TOKEN={FILED}\n")
    a = scripted(p, "a", more='env_pass = ["ANTHROPIC_API_KEY", "GIVEN_UP_KEY"]')
    b = scripted(p, "b", more='env_pass = ["B_ONLY_*"]\nenv_file = "b.env"')
    p.write(a + b + scripted(p, "c") + '[[service]]\nname = "s"\ncommand = "sleep 1000"\n')


@pytest.fixture
def secretive(make) -> Project:
    p = make()
    declare(p)
    p.agents("up", env=CANARIES)
    return p


def sees(pid: int) -> set[str]:
    """Which canaries a process of the project could read in its environment."""
    text = environ(pid)
    return {value for value in (*CANARIES.values(), FILED, GIVEN_UP) if value in text}


def shares(p: Project) -> dict[str, set[str]]:
    return {name: sees(p.pid(name)) for name in SHARES}


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
    assert shares(p) == SHARES
    old = {name: p.pid(name) for name in SHARES}
    for pid in old.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(p.pid(name) not in {0, pid} for name, pid in old.items()))
    until(lambda: shares(p) == SHARES)  # a shell runs first, for a moment
    p.agents("down")


ROTATED = 'sk-ant-"canary" $HOME \\ `rotated`\nwith a second line'


def has(p: Project, name: str, value: str) -> bool:
    """Is this the value in the agent itself, once the shell that starts it is gone?"""
    with suppress(OSError):
        return f"ANTHROPIC_API_KEY={value}" in environ(p.pid(name)).split("\0")
    return False


def healed(p: Project, *names: str) -> None:
    old = {name: p.pid(name) for name in names}
    for pid in old.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(p.pid(name) not in {0, pid} for name, pid in old.items()))


def test_a_heal_has_the_environment_of_the_last_start_by_a_person_and_it_is_nowhere_on_disk(make):
    p = make()
    passes = 'env_pass = ["ANTHROPIC_API_KEY"]'
    p.write(scripted(p, "a", more=passes) + scripted(p, "b", more=passes) + scripted(p, "c", more=passes))
    p.agents("up", env={"ANTHROPIC_API_KEY": "as-at-first"})
    p.agents("restart", "a", env={"ANTHROPIC_API_KEY": ROTATED})
    p.agents("restart", "c")  # by a shell that has none
    until(lambda: has(p, "a", ROTATED))
    healed(p, "a", "b", "c")
    until(lambda: has(p, "a", ROTATED) and has(p, "b", "as-at-first"))
    until(lambda: p.row("c")["state"] == "RUNNING")
    assert "ANTHROPIC_API_KEY" not in environ(p.pid("c"))
    assert "handed on from the run before" in p.agents("explain", "a")
    spilt = [path for path, data in everywhere(p).items() if b"rotated" in data]
    assert not spilt
    p.agents("restart", "b", env={"ANTHROPIC_API_KEY": ROTATED})
    assert "of the verb that started it" in p.agents("explain", "b")
    p.tmux("kill-server")  # only what was handed on before is still known
    until(lambda: has(p, "a", ROTATED) and has(p, "b", "as-at-first"), 60)
    assert "the watchdog's own" in p.agents("explain", "b")


@pytest.fixture
def users_server(tmp_path, monkeypatch):
    """A default server as a person has it: founded from a shell that knows every secret."""
    (tmp_path / "sockets").mkdir(mode=0o700)
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path / "sockets"))  # the real default server is never ours
    socket = f"{tmp_path}/sockets/tmux-{os.getuid()}/default"

    def tmux(*words: str) -> str:
        argv = ["tmux", "-S", socket, "-f", "/dev/null", *words]
        env = {**os.environ, **CANARIES, "AGENT_MODEL_a": "of-another-day", "EDITOR": "vi"}
        env |= {"GIVEN_UP_KEY": GIVEN_UP}  # the shell of today has no such key
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout

    (tmp_path / "sockets" / f"tmux-{os.getuid()}").mkdir(mode=0o700)
    tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    yield tmux
    tmux("kill-server")


def test_on_the_users_own_server_nobody_sees_what_that_server_was_founded_with(make, users_server):
    """E1, T12: its whole environment would go to every pane; an agent still gets only its share."""
    p = make(defaults='tmux_socket = "default"')
    declare(p)
    before = users_server("show-environment", "-g"), users_server("show-options", "-g")

    def pids() -> dict[str, int]:
        panes = users_server("list-panes", "-a", "-F", "#{session_name} #{pane_dead} #{pane_pid}")
        rows = [row.split() for row in panes.splitlines()]
        return {row[0].removeprefix(p.prefix): int(row[2]) for row in rows if row[1] == "0"}

    def seen() -> dict[str, set[str]]:
        return {name: sees(pid) for name, pid in pids().items() if name in SHARES}

    p.agents("up", env=CANARIES)
    assert seen() == SHARES
    assert "TERM=" in environ(pids()["a"])  # what a terminal needs is not a stranger's
    assert "EDITOR=" not in environ(pids()["a"])
    # it hands out, so it holds what somebody may have, and no more
    dog = environ(p.json("status")["watchdog"]["pid"])
    assert "AGENT_MODEL_a" not in dog
    assert CANARIES["NOBODYS_PASSWORD"] not in dog
    assert CANARIES["B_ONLY_TOKEN"] in dog
    old = pids()
    for name in SHARES:
        os.kill(old[name], signal.SIGKILL)
    until(lambda: all(pids().get(name, old[name]) != old[name] for name in SHARES))
    until(lambda: seen() == SHARES)
    p.agents("down")
    assert list(pids()) == ["mine"]
    assert (users_server("show-environment", "-g"), users_server("show-options", "-g")) == before


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
    modes = {f: mode_of(f) for f in ours}
    assert not {str(f): oct(mode) for f, mode in modes.items() if mode & 0o077}


def mode_of(path: Path) -> int:
    """Nought for one that is gone: the watchdog is at work, and what it writes is renamed."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0
