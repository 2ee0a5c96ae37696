"""Write a starter project.

Writes agents.toml, prompts/ and a first plan. Existing files are not touched. The result validates,
and runs with no agent CLI installed.

Example: agents.py init myproject
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys

from fleet import engine, umask
from fleet.config import here
from fleet.verbs.arguments import positional
from fleet.verbs.io import Fail, Io

GROUP = "set up"

PROMPTS = ("kickoff.md", "builder.md", "adversary.md")
PLAN = """# First

Say here what the first phase should achieve and how one can tell that it did.
"""
LOG_DIR = ".ao-state"
CLONES = "work"
LONGEST = 24  # a prefix is part of every session name, and names have room for 48


ARGUMENTS = (
    positional("dir", "directory of the new project (default: .)", nargs="?", default=".", metavar="DIR"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Make what is missing, list what was kept."""
    root = os.path.normpath(os.path.join(here(args.dir), os.path.expanduser(args.dir)))
    if os.path.exists(root) and not os.path.isdir(root):
        raise Fail(f"{root} is not a directory", code=2)
    with umask.as_operator():
        done = [(path, write(os.path.join(root, path), text)) for path, text in contents(root).items()]
        done.append((".gitignore", ignore(os.path.join(root, ".gitignore"))))
    if args.json:
        io.json(
            {"dir": root, "written": [p for p, new in done if new], "kept": [p for p, new in done if not new]}
        )
        return 0
    for path, new in done:
        did = "wrote" if new else "kept "
        io.print(f"{did}  {os.path.join(args.dir, path)}")
    config = os.path.join(args.dir, "agents.toml") if args.dir != "." else ""
    command = shlex.join([called(), "--config", config] if config else [called()])
    io.print(f"\nnext:\n  {command} up\n  {command} status")
    return 0


def called() -> str:
    """The command as the operator can type it again: its bare name if that is found on PATH."""
    typed = sys.argv[0]
    if os.path.basename(typed) != engine.AGENTS or shutil.which(engine.AGENTS) == typed:
        return engine.AGENTS
    return typed


def contents(root: str) -> dict[str, str]:
    """The files of a starter project, by their path in it."""
    with open(os.path.join(os.path.dirname(__file__), "starter.toml"), encoding="utf-8") as file:
        files = {"agents.toml": engine.spoken(file.read().replace("{prefix}", prefix(root)))}
    for name in PROMPTS:
        with open(engine.shipped(f"prompts/{name}"), encoding="utf-8") as file:
            files[f"prompts/{name}"] = file.read()
    return files | {"plans/first.md": PLAN}


def prefix(root: str) -> str:
    """A session prefix out of the directory's name: only what tmux and we allow in names."""
    word = re.sub(r"[^A-Za-z0-9]+", "-", os.path.basename(root)).strip("-").lower()
    return f"{word[:LONGEST].rstrip('-') or 'fleet'}-"


def write(path: str, text: str) -> bool:
    """Create the file, unless something is already there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def ignore(path: str) -> bool:
    """Keep the log directory and the clones out of git; the one file that is added to, never rewritten."""
    try:
        with open(path, encoding="utf-8") as file:
            present = file.read()
    except FileNotFoundError:
        present = ""
    lines = {line.strip().strip("/") for line in present.splitlines()}
    lacking = [name for name in (LOG_DIR, CLONES) if name not in lines]
    if not lacking:
        return False
    with open(path, "a", encoding="utf-8") as file:
        file.write("" if not present or present.endswith("\n") else "\n")
        file.writelines(f"{name}/\n" for name in lacking)
    return True
