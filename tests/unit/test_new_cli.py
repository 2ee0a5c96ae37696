"""A new CLI is one folder: nothing else of the engine is touched, and everything works with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import patience

ROOT = Path(__file__).resolve().parents[2]

FOLDER = {
    "__init__.py": '"""Mimic, a CLI that does not exist."""\n',
    "profile.toml": r"""
bin = "mimic"
prompt_delivery = "arg"
process_name = "mimic"
transcript = "mimic"
signals = ["diary", "screen"]
nested_env = ["MIMIC_INSIDE"]

[screen]
composer = '%(?: (?P<draft>.*))?$'
user = '% \S'
said = '~ '
notice = '!! '
status = '@ '

[[patterns]]
name = "busy"
state = "working"
region = "status"
re = '^@ humming'

[[patterns]]
name = "limit"
state = "limited"
region = "notice"
re = '^!! enough for today'

[[patterns]]
name = "rest"
state = "idle"
region = "composer"
re = '^%'

[[patterns]]
name = "no-voice"
state = "dead"
region = "end"
re = 'lost my voice'
fix = "give it tea"
""",
    "signals.py": '''
"""What mimic reports: one word a line."""

from fleet.backends.sources import Adapter, Reach, Source
from fleet.core.seen import Report, ReportKind
from fleet.core.words import Witness


def diary(_backend, facts):
    return (Source("diary", Reach.TAIL, f"{facts.env['HOME']}/.mimic/diary"),)


def from_diary(heading, data):
    kinds = {b"hum": ReportKind.TURN_BEGAN, b"rest": ReportKind.TURN_ENDED}
    words = data.split()
    return [Report(kinds[word], heading.at, Witness.TRANSCRIPT) for word in words if word in kinds]


ADAPTERS = {"diary": Adapter(diary, from_diary)}
''',
    "usage.py": '''
"""What mimic keeps: a song a line."""

from fleet.backends.readers import Entry, LineFormat, Role, UsageReader
from fleet.text import objects


def count(ledger, source, _file, _fast):
    def feed(buffer, end, offset):
        for number, song in enumerate(objects(bytes(buffer[:end]))):
            counts = (0, song["notes"], 0, 0)
            ledger.add(source, f"{offset} {number}", "", counts, "mimic-1", "2026-11-16")

    return feed, None


def paths(agent, directories):
    for home in agent.homes:
        yield from directories.walk(home, 0)


READER = UsageReader(
    homes=lambda env: (f"{env['HOME']}/.mimic",),
    places=lambda home: (home,),
    formats=(
        LineFormat(
            name="mimic",
            called="songs of mimic",
            marks=2,
            is_line=lambda line: "song" in line and "notes" in line,
            paths=paths,
            head=lambda lines: next(((s["song"], s["dir"]) for s in lines), ("", "")),
            count=count,
            entries=lambda line: iter([Entry(None, Role.ASSISTANT, line["song"])]),
        ),
    ),
)
''',
}

PROGRAM = """
import json, os, sys
from fleet import config
from fleet.backends import profiles, readers, screen_reader as screen, sources
from fleet.tokens.meter import Meter

home = sys.argv[1]
text = '[defaults]\\nsession_prefix = "m-"\\nlog_dir = ".log"\\nbackend = "mimic"\\n'
text += f'[[agent]]\\nname = "a"\\ndir = "{home}"\\n'
own = '[backend.mine]\\ninherits = "mimic"\\nbin = "x"\\nsignals = ["diary"]\\ntranscript = "mimic"\\n'
fleet = config.parse(text + own, f"{home}/agents.toml", strict=True)
backend = fleet.backend_of(fleet.agents[0])

def state(*lines):
    return screen.read(backend, "\\n".join(lines), now=0.0, zone="UTC").state

facts = sources.Facts(home, 0.0, env={"HOME": home})
(place,) = sources.wanted(backend, facts)
told = sources.adapters()[place.adapter].signals(sources.Heading(backend, facts, place, 1.0), b"hum rest")
meter, wanted = Meter(), [readers.Wanted("a", backend.transcript, home, env={"HOME": home})]
meter.sweep(wanted)
print(json.dumps({
    "warnings": fleet.warnings,
    "states": [
        state("% sing", "~ la", "", "% ", "", " keys"),
        state("% sing", "@ humming", "", "% ", "", " keys"),
        state("% sing", "!! enough for today", "", "% ", "", " keys"),
    ],
    "fix": screen.ending(backend, "oh\\nlost my voice").fix,
    "where": place.where,
    "told": [report.kind for report in told],
    "tokens": sum(counts.total for counts in meter.tally(wanted).agents["a"].values()),
    "listed": "mimic" in profiles.names(),
}))
"""


@pytest.fixture
def engine(tmp_path):
    """A copy of the engine with one folder more."""
    copy = tmp_path / "engine"
    shutil.copytree(ROOT / "fleet", copy / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("agents.py", "agentlog.py"):
        shutil.copy(ROOT / name, copy / name)
    folder = copy / "fleet" / "backends" / "mimic"
    folder.mkdir()
    for name, text in FOLDER.items():
        (folder / name).write_text(text.lstrip("\n"), encoding="utf-8")
    home = tmp_path / "home"
    (home / ".mimic").mkdir(parents=True)
    songs = [{"song": "one", "notes": 5, "dir": str(home)}, {"song": "two", "notes": 7, "dir": str(home)}]
    (home / ".mimic" / "songs.jsonl").write_text("".join(json.dumps(song) + "\n" for song in songs))
    return copy


def files(root: Path) -> set[str]:
    found = root.rglob("*")
    return {str(p.relative_to(root)) for p in found if p.is_file() and "__pycache__" not in p.parts}


def run(engine: Path, *words: str) -> str:
    home = engine.parent / "home"
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, *words], cwd=engine, env=env, capture_output=True, text=True, timeout=patience(60)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_cli_is_one_folder(engine):
    """Declared, its screen read, its reports heard, its last words known, its tokens counted."""
    home = str(engine.parent / "home")
    assert json.loads(run(engine, "-c", PROGRAM, home)) == {
        "warnings": [],
        "states": ["idle", "working", "limited"],
        "fix": "give it tea",
        "where": f"{home}/.mimic/diary",
        "told": ["turn_began", "turn_ended"],
        "tokens": 12,
        "listed": True,
    }
    new = files(engine / "fleet") - files(ROOT / "fleet")
    assert new == {f"backends/mimic/{name}" for name in FOLDER}


def test_the_programs_know_a_new_cli_too(engine):
    assert "mimic" in run(engine, "agents.py", "backend", "list")
    songs = engine.parent / "home" / ".mimic" / "songs.jsonl"
    assert json.loads(run(engine, "agentlog.py", "usage", "--json"))["by_cli"]["mimic"]["output"] == 12
    assert "two" in run(engine, "agentlog.py", "render", str(songs))
    (engine / "screen.txt").write_text("% sing\n@ humming\n\n% \n\n keys\n")
    assert "working" in run(engine, "agents.py", "screen", "--backend", "mimic", "screen.txt")
