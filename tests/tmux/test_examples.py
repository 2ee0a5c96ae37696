"""The examples are valid, differ as they say, and one of them is played to its end here (R006, R162-R171)."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import tomllib

import pytest

from fleet import config
from tests.examples.play import ALL, EXAMPLES, LOOPS, Played
from tests.tmux.project import ENGINE

pytestmark = pytest.mark.tmux


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("file", ["agents.toml", "offline.toml"])
def test_every_example_is_strictly_valid(name, file):
    fleet = config.load(str(EXAMPLES / name / file), strict=True)
    assert fleet.warnings == ()


@pytest.mark.parametrize("name", ALL)
def test_every_example_has_its_readme_and_its_prompts(name):
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert "offline.toml" in readme
    assert list((EXAMPLES / name / "prompts").glob("*.md"))


def test_prefixes_never_collide():
    prefixes = [
        tomllib.loads((EXAMPLES / name / file).read_text(encoding="utf-8"))["defaults"]["session_prefix"]
        for name in ALL
        for file in ("agents.toml", "offline.toml")
    ]
    assert len(set(prefixes)) == len(prefixes)


def test_the_family_builds_the_same_task():
    """R170: one dimension each; what is built is the same for all."""
    for name in LOOPS:
        fleet = config.load(str(EXAMPLES / name / "agents.toml"))
        assert {a.clone for a in fleet.agents} == {str(EXAMPLES / "calc")}
        ids = [p.id for p in fleet.loop.phases]
        assert ids[:3] == ["lex", "parse", "eval"]
        assert (ids[3:] == ["review"]) is (name == "builder-adversary-deferred")
        roles = sorted(a.role for a in fleet.agents)
        assert roles == (["builder"] if name == "builder-solo" else ["adversary", "builder"])


@pytest.mark.parametrize("name", LOOPS)
def test_offline_differs_from_the_real_one_only_in_who_plays(name):
    real, offline = (config.load(str(EXAMPLES / name / f)) for f in ("agents.toml", "offline.toml"))
    assert real.loop.phases == offline.loop.phases
    assert [(a.name, a.role, a.kind) for a in real.agents] == [
        (a.name, a.role, a.kind) for a in offline.agents
    ]
    assert {a.backend for a in real.agents} == {"claude"}
    assert {a.backend for a in offline.agents} == {"scripted"}


def test_the_canonical_pair_uses_the_shipped_prompts():
    for name in ("kickoff", "builder", "adversary"):
        shipped = (ENGINE / "prompts" / f"{name}.md").read_bytes()
        assert (EXAMPLES / "builder-adversary" / "prompts" / f"{name}.md").read_bytes() == shipped


def test_the_small_prompts_are_small():
    def words(name):
        return sum(len(f.read_text().split()) for f in (EXAMPLES / name / "prompts").glob("*.md"))

    assert words("builder-adversary-min") * 4 < words("builder-adversary")


def test_prompts_know_nothing_of_a_project():
    """R010: generic, every slot known."""
    for name in ("kickoff", "builder", "adversary"):
        text = (ENGINE / "prompts" / f"{name}.md").read_text(encoding="utf-8")
        assert set(re.findall(r"\{(\w+)\}", text)) <= {"phase_id", "plan", "status", "role"}
        assert "calc" not in text
    kickoff = (ENGINE / "prompts" / "kickoff.md").read_text(encoding="utf-8")
    for slot in ("{phase_id}", "{plan}", "{status}", "{role}"):
        assert slot in kickoff


def test_status_of_an_example_only_reads():
    """R171: works with no CLI, creates nothing."""
    before = sorted(str(p) for p in EXAMPLES.rglob("*"))
    words = ["status", "--config", str(EXAMPLES / "snakepit" / "agents.toml")]
    done = subprocess.run(
        [sys.executable, str(ENGINE / "agents.py"), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(str(p) for p in EXAMPLES.rglob("*")) == before


def test_ideas_are_sketched():
    """R169."""
    text = (EXAMPLES / "IDEAS.md").read_text(encoding="utf-8").lower()
    for shape in (
        "stigmergy",
        "kitchen",
        "blackboard",
        "debate",
        "baton",
        "reactive",
        "evolution",
        "day and night",
    ):
        assert shape in text


def test_many_hungry_snakes_never_share_a_task(tmp_path):
    """R168: a claim is a rename."""
    pit = [sys.executable, str(EXAMPLES / "snakepit" / "pit.py")]
    env = {"PIT": str(tmp_path / "pit"), "PATH": "/usr/bin:/bin"}
    for number in range(12):
        subprocess.run(
            [*pit, "add", f"task {number}"], input=b"x", env=env, check=True, stdout=subprocess.DEVNULL
        )
    got = []

    def eat(worker):
        for _ in range(4):
            out = subprocess.run(
                [*pit, "claim", worker], env=env, check=True, capture_output=True, text=True
            ).stdout
            if out:
                got.append(out.split("--")[1])
                subprocess.run([*pit, "finish", worker], env=env, check=True)

    workers = [threading.Thread(target=eat, args=(f"snake-{n}",)) for n in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert len(got) == len(set(got)) == 12


@pytest.mark.long
def test_the_control_of_the_family_runs_offline_to_its_end(tmp_path):
    """All seven are played by `tests/run.sh examples`."""
    p = Played(tmp_path, "builder-solo")
    try:
        p.play()
        assert p.events("gate.failed")
        assert {"agent.limited", "agent.resumed", "agent.waiting"} <= p.kinds()
        assert len(p.events("phase.advanced")) == 3
        p.agents("down")
        assert p.tmux("list-sessions") == ""
    finally:
        p.tear_down()
