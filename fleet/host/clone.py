"""An agent's own copy of a repository: made once, never touched again.

A clone is made under another name and renamed when it is whole, so a directory that is there is a
directory that works, and one that was there before is left exactly as it is. Where git would refuse a
push into the source (a branch is checked out there, or it is a plain directory and no repository), a bare
repository is founded from it under `log_dir`, and every agent that names that directory clones the same one:
this is how agents share work without a server.

Runs as a child (`python -P clone.py SOURCE TARGET REPOSITORIES`), because a remote may take minutes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys

if __name__ == "__main__":  # started by path, with -P: our neighbours must not pass for library modules
    _HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if _HOME not in sys.path:  # where pip installed us it is, in its place after the standard library
        sys.path.insert(0, _HOME)

from fleet.core.model import Fleet, Member
from fleet.host.children import child_env
from fleet.host.git import ENV, SAFE
from fleet.host.locks import alone

CLONE_TIMEOUT_S = 1800.0
_SPECIAL, _ESCAPED = r"([\\*?\[\]!# ])", r"\\\1"  # in a pattern of git's
ACCEPTS = frozenset({"ignore", "warn", "false", "updateinstead"})  # of receive.denyCurrentBranch
_FOUNDER = {
    f"GIT_{who}_{what}": word
    for who in ("AUTHOR", "COMMITTER")
    for what, word in (("NAME", "fleet"), ("EMAIL", "fleet@localhost"))
}


class CloneError(Exception):
    """A clone could not be made; the text says why."""


def clone_command(fleet: Fleet, agent: Member) -> list[str]:
    """The child that makes an agent's directory."""
    script = os.path.abspath(__file__)
    return [sys.executable, "-P", script, agent.clone, agent.dir, f"{fleet.log_dir}/repos"]


def make_clone(source: str, target: str, repositories: str) -> str:
    """Make `target`, unless something is there already; where its pushes go, if not to `source`."""
    parent, name = os.path.split(target.rstrip("/"))
    os.makedirs(parent, exist_ok=True)
    with alone(parent):
        if os.path.lexists(target):
            return ""
        _clear(parent, f".{name}.clone-")
        shared = ""
        if os.path.isdir(source) and not takes_pushes(source):
            source = shared = found(source, repositories)
        half = os.path.join(parent, f".{name}.clone-{os.urandom(4).hex()}")
        try:
            _git("clone", "--quiet", "--", source, half)
            os.rename(half, target)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return shared


def takes_pushes(directory: str) -> bool:
    """Would git take a push to the branch that a clone of this directory works on?"""
    if not _is_repository(directory):
        return False
    if _git("-C", directory, "rev-parse", "--is-bare-repository") == "true":
        return True
    told = _git("-C", directory, "config", "--default", "refuse", "--get", "receive.denyCurrentBranch")
    if told.lower() in ACCEPTS:
        return True
    try:
        _git("-C", directory, "symbolic-ref", "--quiet", "HEAD")
    except CloneError:
        return True  # no branch is checked out
    return False


def found(directory: str, repositories: str) -> str:
    """A bare repository that begins with the commits or files of a directory; the same one every time."""
    directory = os.path.realpath(directory)
    tag = hashlib.sha256(directory.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = f"{os.path.basename(directory)}-{tag}.git"
    home = os.path.join(repositories, name)
    os.makedirs(repositories, mode=0o700, exist_ok=True)
    with alone(repositories):
        if os.path.isdir(home):
            return home
        _clear(repositories, f".{name}.half-")
        half = os.path.join(repositories, f".{name}.half-{os.urandom(4).hex()}")
        try:
            if _is_repository(directory):
                _git("clone", "--quiet", "--bare", "--", directory, half)
            else:
                _from_files(directory, half, os.path.dirname(os.path.realpath(repositories)))
            os.rename(half, home)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return home


def _from_files(directory: str, bare: str, log_dir: str) -> None:
    """All files but our own: state and logs are not part of the work."""
    _git("init", "--quiet", "--bare", "--initial-branch=main", bare)
    ours = os.path.relpath(log_dir, directory)
    if not ours.startswith(".."):
        os.makedirs(os.path.join(bare, "info"), exist_ok=True)
        path = os.path.join(bare, "info", "exclude")
        with open(path, "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"/{re.sub(_SPECIAL, _ESCAPED, ours)}/\n")
    here = (f"--git-dir={bare}", f"--work-tree={directory}")
    _git(*here, "add", "--all", ".")
    tree = _git(*here, "write-tree")
    commit = _git(*here, "commit-tree", "-m", "start", tree)
    _git(*here, "update-ref", "refs/heads/main", commit)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(bare, "index"))


def _is_repository(path: str) -> bool:
    bare = os.path.isdir(os.path.join(path, "objects")) and os.path.isfile(os.path.join(path, "HEAD"))
    return bare or os.path.lexists(os.path.join(path, ".git"))


def _git(*words: str) -> str:
    settings = [word for setting in SAFE for word in ("-c", setting)]
    done = subprocess.run(
        ["git", "--no-pager", *settings, *words],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**child_env(os.environ), **ENV, **_FOUNDER},
        timeout=CLONE_TIMEOUT_S,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise CloneError(said[-1] if said else f"git {words[0]} ended with {done.returncode}")
    return done.stdout.decode().strip()


def _clear(directory: str, prefix: str) -> None:
    """Half-made ones whose maker was killed; we hold the lock, so no process is at work on them."""
    for name in os.listdir(directory):
        if name.startswith(prefix):
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def main(argv: list[str]) -> int:
    """The child."""
    try:
        make_clone(*argv)
    except (CloneError, OSError, subprocess.TimeoutExpired) as error:
        print(f"cannot clone {argv[0]} to {argv[1]}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
