"""What we do not do: listen on the network, or touch a tmux server that is not this test's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fleet.host import procfs
from tests.tmux.project import Project

pytestmark = pytest.mark.tmux


def listening() -> set[str]:
    """The inodes of all sockets on this machine that wait for a caller."""
    rows = [line.split() for name in ("tcp", "tcp6", "udp", "udp6") for line in table(name)]
    return {row[9] for row in rows if row[3] in {"0A", "07"}}


def table(name: str) -> list[str]:
    path = Path("/proc/net") / name
    return path.read_text().splitlines()[1:] if path.exists() else []


def sockets(pid: int) -> set[str]:
    """The inodes of the sockets that a process holds."""
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        kind, _, inode = os.readlink(fd).partition(":")
        if kind == "socket":
            found.add(inode.strip("[]"))
    return found


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    kin = [pid]
    for parent in kin:
        kin += [p.pid for p in procfs.table().values() if p.ppid == parent]
    return kin


def test_nothing_of_ours_listens_on_the_network(tmp_path):
    """I44: there is no port, so there is no request to refuse."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs procfs")
    one = '[[agent]]\nname = "a"\nkind = "persistent"\nbackend = "scripted"\nprompt = "go"\n'
    made = Project(tmp_path, one)
    try:
        made.agents("up")
        everybody = family(made.json("status")["watchdog"]["pid"]) + family(made.row("a")["pid"])
        assert len(everybody) >= 2
        assert not listening() & {inode for pid in everybody for inode in sockets(pid)}
    finally:
        made.tear_down()


def test_the_default_server_of_this_run_holds_nothing_but_its_canaries(canary):
    """I32: whatever ran before this test and beside it."""
    if "AOTEST_RUN" not in os.environ:
        pytest.skip("outside tests/run.sh the default server is a person's")
    said = subprocess.run(["tmux", "list-sessions", "-F", "#{session_name}"], capture_output=True, text=True)
    names = said.stdout.split()
    assert canary in names
    assert all(name.startswith("canary-") for name in names)
