"""A fleet of one user beside another user: nothing of theirs is read, run, or told a secret."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tmux.project import ENGINE, Project, until

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a second user"),
]

OTHER = 65534  # nobody: a second user that every system has


def sleeper(name: str, more: str = "") -> str:
    return f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "s"\n{more}\n'


SLEEPS = '[backend.s]\nbin = "exec sleep 1000000"\nprompt_delivery = "exec"\n'


@pytest.fixture
def fleet(make) -> Project:
    p = make()
    p.write(SLEEPS + sleeper("a", 'env_file = "a.env"\nprompt_file = "a.md"'))
    (p.root / "a.env").write_text("X=1\n")
    (p.root / "a.md").write_text("Begin.\n")
    for path in (p.root, p.config, p.root / "a.env", p.root / "a.md"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return p


def chown(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


def chmod(mode: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(mode)


LOOSE = {
    "a config that others may write": ("agents.toml", chmod(0o666)),
    "a config that a group may write": ("agents.toml", chmod(0o664)),
    "another user's config": ("agents.toml", chown),
    "a project that others may write": (".", chmod(0o777)),
    "another user's project": (".", chown),
    "another user's log_dir": (".ao-state", chown),
    "a log_dir that others may write": (".ao-state", chmod(0o777)),
    "another user's state": (".ao-state/state", chown),
    "an env_file that others may write": ("a.env", chmod(0o666)),
    "another user's prompt": ("a.md", chown),
}


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that the other user can reach; pytest's own are closed to them."""
    place = Path(tempfile.mkdtemp(prefix="aotest-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@contextmanager
def loosened(place: Path, how: Callable[[Path], None]) -> Iterator[None]:
    before = place.stat()
    os.chown(place, 0, OTHER)
    how(place)
    try:
        yield
    finally:
        os.chown(place, before.st_uid, before.st_gid)
        place.chmod(stat.S_IMODE(before.st_mode))


def test_acting_verbs_refuse_what_another_user_could_change(fleet):
    fleet.agents("up")
    pid = fleet.pid("a")
    acting = [("up",), ("restart", "a"), ("send", "a", "x"), ("reset", "a"), ("ensure",)]
    for number, (what, (name, how)) in enumerate(LOOSE.items()):
        place = fleet.root / name
        with loosened(place, how):
            info = place.stat()
            for verb in acting if not number else acting[:2]:
                said = fleet.agents(*verb, code=2)
                assert str(place.resolve()) in said, (what, verb, said)
                assert f"uid {info.st_uid}, mode {stat.S_IMODE(info.st_mode):04o}" in said, (what, said)
                assert "chown 0 " in said or "chmod go-w " in said, (what, said)
            assert fleet.pid("a") == pid, what
    fleet.agents("restart", "a")
    assert fleet.pid("a") != pid


def test_the_named_command_is_enough_and_down_and_status_go_on_without_it(fleet):
    fleet.agents("up")
    fleet.config.chmod(0o666)
    assert any("0666" in p for p in fleet.json("status")["problems"])
    said = fleet.agents("up", code=2)
    assert "0666" in fleet.agents("doctor", code=1)
    fleet.agents("down")
    assert not fleet.pid("a")
    command = said.partition("(try: ")[2].partition(")")[0]
    subprocess.run(command, shell=True, check=True)
    fleet.agents("up")


def test_a_state_directory_planted_before_the_first_up_is_refused(fleet):
    planted = fleet.log_dir / "state"
    planted.mkdir(parents=True)
    chown(planted)
    chown(fleet.log_dir)
    said = fleet.agents("up", code=2)
    assert f"uid {OTHER}" in said
    assert not list(planted.iterdir())


def test_a_state_directory_below_tmp_is_fine(make, tmp_path):
    """A sticky directory above is no fault: others may add names there, not take ours away."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    p = make()
    p.head = p.head.replace('".ao-state"', f'"{shared}/mine"')
    p.log_dir = shared / "mine"
    p.write(SLEEPS + sleeper("a"))
    p.agents("up")
    assert p.pid("a")
    p.agents("down")


def test_the_watchdog_does_not_follow_a_config_that_others_may_write(fleet):
    fleet.agents("up")
    pid = fleet.pid("a")
    fleet.config.chmod(0o666)
    fleet.write(fleet.config.read_text().removeprefix(fleet.head).replace("sleep 1000000", "sleep 2000000"))
    until(lambda: fleet.events("config.rejected"))
    os.kill(pid, 9)
    until(lambda: fleet.pid("a") not in {0, pid})
    command = Path(f"/proc/{fleet.pid('a')}/cmdline").read_bytes()
    until(lambda: b"sleep" in Path(f"/proc/{fleet.pid('a')}/cmdline").read_bytes())
    assert b"2000000" not in command


def test_the_watchdog_does_not_move_into_a_directory_of_another_user(make, open_place):
    home = open_place / "home"
    home.mkdir()
    p = make()
    p.head = p.head.replace('".ao-state"', f'"{home}/fl"')
    p.log_dir = home / "fl"
    p.write(SLEEPS + sleeper("a"))
    p.agents("up")
    home.chmod(0o777)

    def plant() -> None:
        os.rename(home / "fl", home / "old")
        os.makedirs(home / "fl" / "state")
        os.makedirs(home / "fl" / "logs")

    _as_other(plant)
    assert any(f"{home}" in problem for problem in p.json("status")["problems"])
    until(lambda: b"other users" in (home / "old" / "logs" / f"{p.prefix}watchdog.log").read_bytes())
    assert not [f for f in (home / "fl").rglob("*") if f.stat().st_uid != OTHER]
    shutil.rmtree(home / "fl")
    (home / "old").rename(home / "fl")
    home.chmod(0o755)
    p.agents("up")
    p.agents("down")


def test_a_server_in_a_socket_directory_of_another_user_is_told_nothing(make, open_place):
    secret = {"MY_KEY": "canary-for-a-0006"}
    place = open_place / "sockets"
    place.mkdir(mode=0o700)
    p = make()
    p.write(SLEEPS + sleeper("a", 'env_pass = ["MY_KEY"]'))
    p.agents("up", env={"TMUX_TMPDIR": str(place), **secret})
    p.agents("down", env={"TMUX_TMPDIR": str(place)})
    shutil.rmtree(place)
    open_place.chmod(0o777)
    theirs = place / f"tmux-{os.getuid()}"
    _as_other(lambda: os.makedirs(theirs, 0o777))
    socket = theirs / p.socket
    argv = ["tmux", "-f", "/dev/null", "-S", str(socket), "new-session", "-d", "-s", "trap", "sleep 1000"]
    env = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh"}
    subprocess.run(argv, user=OTHER, group=OTHER, check=True, env=env)
    os.chmod(socket, 0o777)
    try:
        said = p.agents("up", "--no-wait", code=None, env=secret)
        assert str(open_place) in said, said
        listing = ["tmux", "-S", str(socket), "list-sessions", "-F", "#{session_name}"]
        there = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
        assert there == ["trap"]
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)
        open_place.chmod(0o755)


def _as_other(act: Callable[[], object]) -> None:
    """Do something as the other user, in a process of its own."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_whatever_the_umask_no_file_of_the_engine_can_be_written_by_others(make, tmp_path):
    engine = tmp_path / "engine"
    engine.mkdir(mode=0o755)
    for name in ("agents.py", "agentlog.py"):
        shutil.copy(ENGINE / name, engine)
    shutil.copytree(ENGINE / "fleet", engine / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    p = make()
    p.write('[[agent]]\nname = "a"\nkind = "persistent"\nbackend = "scripted"\nprompt = "Begin."\n')
    p.config.chmod(0o644)
    p.root.chmod(0o755)
    env = {k: v for k, v in p.env().items() if not k.startswith("PYTHON")}
    for words in (("agents.py", "up"), ("agentlog.py", "list"), ("agents.py", "down")):
        argv = [sys.executable, str(engine / words[0]), *words[1:], "--config", str(p.config)]
        done = subprocess.run(argv, env=env, umask=0, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    made = [f for f in engine.rglob("*") if "__pycache__" in f.parts]
    assert made, "nothing was compiled: this test proves nothing"
    assert not [f for f in engine.rglob("*") if f.stat().st_mode & 0o022]


def test_agents_keep_the_operators_umask(make):
    p = make()
    p.write(SLEEPS.replace("exec sleep", "umask > mask; exec sleep") + sleeper("a"))
    old = os.umask(0o027)
    try:
        p.agents("up")
    finally:
        os.umask(old)
    mask = p.root / "mask"
    until(lambda: mask.exists() and mask.read_text().strip() == "0027")
    mask.unlink()
    os.kill(p.pid("a"), 9)
    until(lambda: mask.exists() and mask.read_text().strip() == "0027")
