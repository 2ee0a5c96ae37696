"""What the documents tell people to type works as it stands, in a fresh copy of the project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import patience
from tests.documents import ROOT, Block, runnable
from tests.tmux.project import Project

pytestmark = pytest.mark.tmux

PEEK = Path(__file__).with_name("peek.py")
ENDLESS = re.compile(r"^(?!\s*#)(.*agents\.py\b.*(?:\battach\b|\btop\b|\bevents -f\b|\blogs -f\b))")
PAGES = {str(path.relative_to(ROOT)): found for path, found in runnable().items()}


def copy(to: Path) -> None:
    """The project as it would be cloned now."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file() and not name.startswith("tests/fixtures/"):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def script(block: Block) -> str:
    """The block for bash; what would never end is only looked at."""
    lines = [ENDLESS.sub(rf'"$PEEK_PYTHON" "{PEEK}" \1', line) for line in block.body.splitlines()]
    return "\n".join(["set -euo pipefail", *(line.removeprefix("$ ") for line in lines)])


@pytest.fixture
def desk(tmp_path):
    """A copy, and an environment in which nothing of this machine's sessions can be met."""
    root, programs, sockets = tmp_path / "copy", tmp_path / "bin", tmp_path / "sockets"
    for folder in (root, programs, sockets, tmp_path / "home"):
        folder.mkdir()
    copy(root)
    python = programs / "python3"  # with the libraries at hand: nothing is fetched here
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    keep = {k: v for k, v in os.environ.items() if k in {"PATH", "LANG", "AOTEST_RUN", "TMPDIR"}}
    env = keep | {
        "PATH": f"{programs}:{keep['PATH']}",
        "HOME": str(tmp_path / "home"),
        "TMUX_TMPDIR": str(sockets),
        "PEEK_PYTHON": sys.executable,
        "TERM": "xterm-256color",
        "GIT_AUTHOR_NAME": "Reader",
        "GIT_AUTHOR_EMAIL": "reader@example.org",
        "GIT_COMMITTER_NAME": "Reader",
        "GIT_COMMITTER_EMAIL": "reader@example.org",
    }
    yield root, env
    configs = sorted(root.rglob("*.toml"))
    for config in configs:
        if any(config.parent.glob(".*/state")):
            words = [sys.executable, str(root / "agents.py"), "down", "--config", str(config)]
            where, limit = config.parent, patience(120)
            subprocess.run(words, env=env, cwd=where, capture_output=True, timeout=limit, check=False)
    for socket in sockets.rglob("*"):
        if socket.is_socket():
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True, check=False)


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_tells_people_to_type_works(name, desk):
    root, env = desk
    where = (root / name).parent
    for block in PAGES[name]:
        done = subprocess.run(
            ["bash", "-c", script(block)],
            cwd=where,
            env=env,
            capture_output=True,
            text=True,
            timeout=patience(300),
            check=False,
            stdin=subprocess.DEVNULL,
        )
        said = f"{block.place}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        assert done.returncode == 0, said
        assert "Traceback" not in said, said


# --- the contract of `status --json` ----------------------------------------------------------------------


def fits(value, shape: dict, at: str = "status") -> list[str]:
    """What of a value does not fit a schema: the few words of JSON schema that ours uses."""
    if "anyOf" in shape:
        return [] if any(not fits(value, one, at) for one in shape["anyOf"]) else [f"{at}: fits no form"]
    if "enum" in shape:
        return [] if value in shape["enum"] else [f"{at}: {value!r}"]
    kinds = {"string": str, "boolean": bool, "number": (int, float), "integer": int, "null": type(None)}
    kinds |= {"object": dict, "array": list}
    allowed = shape["type"] if isinstance(shape["type"], list) else [shape["type"]]
    if not any(isinstance(value, kinds[a]) for a in allowed) or (value is True and "boolean" not in allowed):
        return [f"{at}: {value!r} is no {allowed}"]
    if isinstance(value, list):
        return [x for n, item in enumerate(value) for x in fits(item, shape["items"], f"{at}[{n}]")]
    if not isinstance(value, dict):
        return []
    wrong = [f"{at}: {name} is missing" for name in shape["required"] if name not in value]
    wrong += [f"{at}: {name} is not in the schema" for name in value if name not in shape["properties"]]
    known = [name for name in value if name in shape["properties"]]
    return wrong + [x for n in known for x in fits(value[n], shape["properties"][n], f"{at}.{n}")]


@pytest.fixture
def project(tmp_path):
    one = Project(
        tmp_path / "project",
        '[[agent]]\nname = "a"\nkind = "persistent"\nbackend = "demo"\n'
        '[[agent]]\nname = "b"\nkind = "persistent"\nbackend = "demo"\nenabled = false\n'
        '[[service]]\nname = "clock"\ncommand = "exec sleep 1000"\n',
    )
    yield one
    one.tear_down()


def test_status_prints_what_its_schema_says_before_during_and_after_a_run(project):
    schema = json.loads((ROOT / "docs" / "status.schema.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
    shown = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    assert fits(shown, schema) == []
    assert fits(shown | {"more": 1}, schema)
    assert fits(project.json("status"), schema) == []
    project.agents("up", "a")
    unwatched = project.json("status")
    assert unwatched["agents"][0]["detail"] == "UNWATCHED"
    assert fits(unwatched, schema) == []
    project.agents("up")
    running = project.json("status")
    assert running["watchdog"]["state"] == "running"
    assert fits(running, schema) == []
    project.agents("down")
    assert fits(project.json("status"), schema) == []
