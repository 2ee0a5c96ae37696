"""The recipes of CONTRIBUTING, each followed on a copy of the engine, with no more files than stated."""

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

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"(?m)^\| (?:a|an) ([a-z]+) \| (\d+)(?: folder)? \| (.*?) \|")
COPIED = ("fleet", "tools", "agents.py", "README.md", "docs", "tests/__init__.py", "tests/unit/__init__.py")
GOALS = {"key": 2, "effect": 3, "event": 1, "detail": 2, "rule": 2, "backend": 1, "verb": 1}


def stated() -> dict[str, tuple[int, set[str]]]:
    """What CONTRIBUTING says: how many files, and which."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return {
        what: (int(count), set(re.findall(r"`([\w/.<>]+)`", rest))) for what, count, rest in ROW.findall(text)
    }


class Checkout:
    """A copy that is edited as a contributor would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched: set[str] = set()
        for name in (*COPIED, "tests/records.py", "tests/unit/cases.py"):
            source, target = ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target)  # with what Python compiled: it is as old as its source
            else:
                shutil.copy2(source, target)

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")
        self.touched.add(path)

    def write(self, path: str, text: str) -> None:
        assert not (self.root / path).exists(), path
        (self.root / path).write_text(text.lstrip("\n"), encoding="utf-8")
        self.touched.add(path)

    def run(self, *words: str) -> str:
        env = {"HOME": str(self.root), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            timeout=patience(60),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, program: str) -> dict[str, object]:
        return json.loads(self.run("-c", f"import json\n{program}\nprint(json.dumps(said))"))

    def costs(self, what: str, name: str = "") -> None:
        """As many files as stated, and these. What documents are written by hand is in the recipe's text."""
        count, files = stated()[what]
        code = {path for path in self.touched if not path.endswith(".md")}
        assert (count, {f.replace("<name>", name) for f in files}) == (len(code), code)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_the_recipes_are_as_cheap_as_they_should_be():
    assert {what: count for what, (count, _) in stated().items()} == GOALS


# --- a key ----------------------------------------------------------------------------------------------

FILE = """
[watchdog]
bell_after = 9
[defaults]
session_prefix = "x-"
log_dir = ".log"
backend = "demo"
[[agent]]
name = "a"
prompt = "go"
"""


def test_a_key(checkout):
    checkout.edit(
        "fleet/config/keys.py",
        '    Key("defaults", "session_prefix", Type.STRING,',
        '    Key("watchdog", "bell_after", Type.SECONDS, "When the bell rings.", "7", s.positive),\n'
        '    Key("defaults", "session_prefix", Type.STRING,',
    )
    checkout.edit(
        "fleet/core/model.py",
        "    notify_after: float = 300.0\n",
        "    notify_after: float = 300.0\n    bell_after: float = 7.0\n",
    )
    (checkout.root / "agents.toml").write_text(FILE)
    assert "fine: 1 agent" in checkout.run("agents.py", "validate")
    assert "When the bell rings." in checkout.run("agents.py", "validate", "--explain", "watchdog.bell_after")
    said = checkout.python("""
from fleet import config
from tools import docs
text = open("agents.toml").read()
read = lambda text: config.parse(text, "agents.toml").watchdog.bell_after
said = {"given": read(text), "default": read(text.replace("bell_after = 9", "")),
        "documented": "bell_after" in docs.documents()["config.md"]}
""")
    assert said == {"given": 9.0, "default": 7.0, "documented": True}
    checkout.costs("key")


# --- a rule, and what rules speak with ------------------------------------------------------------------

JUDGED = """
from fleet.core.agent.decide import judge
from fleet.core.views import state_of
from tests.unit.cases import case
from tools import docs
asked = case()
decided = judge(asked)
said = {"rule": decided.shown.rule, "detail": decided.shown.detail, "reason": decided.shown.reason,
        "effects": [type(act).__name__ for act in decided.effects], "notes": [n.type for n in decided.notes]}
"""
WEDGED = "    memory, reading = case.memory, case.seen.reading\n"  # the first line of a rule that is there


def test_a_rule(checkout):
    checkout.write(
        "fleet/core/agent/bell.py",
        '''
"""An agent that was idle at its prompt hears the bell."""

from __future__ import annotations

from fleet.core.case import Case, Verdict


def bell(case: Case) -> Verdict | None:
    """Hold an idle agent."""
    return Verdict("the bell rang", hold=True) if case.memory.state == "idle" else None
''',
    )
    decide = "fleet/core/agent/decide.py"
    checkout.edit(
        decide,
        "from fleet.core.agent.bringup import bringup\n",
        "from fleet.core.agent.bell import bell\nfrom fleet.core.agent.bringup import bringup\n",
    )
    checkout.edit(decide, '    ("wedged", wedged),\n', '    ("bell", bell),\n    ("wedged", wedged),\n')
    said = checkout.python(JUDGED)
    assert (said["rule"], said["reason"], said["detail"]) == ("bell", "the bell rang", "IDLE")
    checkout.costs("rule", "bell")


def test_a_detail(checkout):
    checkout.edit(
        "fleet/core/words.py",
        '    DISABLED = "DISABLED"',
        '    RINGING = "RINGING", "the bell rings for it"\n    DISABLED = "DISABLED"',
    )
    checkout.edit(
        "fleet/core/agent/wedged.py",
        WEDGED,
        f'    return Verdict("the bell", hold=True, detail=Detail.RINGING)\n{WEDGED}',
    )
    program = """
said |= {"state": state_of(asked.seen, decided.shown.detail, decided.memory),
         "documented": "| `RINGING` | the bell rings for it |" in docs.states(),
         "schema": "RINGING" in json.dumps(docs.status_schema())}
"""
    said = checkout.python(JUDGED + program)
    assert (said["rule"], said["detail"], said["state"]) == ("wedged", "RINGING", "RUNNING")
    assert said["documented"]
    assert said["schema"]
    checkout.costs("detail", "wedged")


def test_an_event(checkout):
    checkout.edit(
        "fleet/core/words.py",
        '    AGENT_READY = "agent.ready"',
        '    AGENT_RANG = "agent.rang", "its bell rang"\n    AGENT_READY = "agent.ready"',
    )
    said = checkout.python("""
from fleet.core.words import EventType
from fleet.host.disk import RealDisk
from fleet.store.eventlog import Events
from tools import docs
import os
path = os.path.abspath("events.jsonl")
Events(RealDisk(), path, lambda: 0.0).record(EventType.AGENT_RANG, agent="a", reason="ding")
said = {"record": json.loads(open(path).read()),
        "documented": "| `agent.rang` | its bell rang |" in docs.events()}
""")
    assert said["documented"]
    assert (said["record"]["type"], said["record"]["reason"]) == ("agent.rang", "ding")
    checkout.costs("event")


def test_an_effect(checkout):
    checkout.edit(
        "fleet/core/effects.py",
        "Touch = Start | Signal |",
        '''@dataclass(frozen=True, slots=True)
class Ring(_Whole):
    """Ring the bell."""

    agent: str
    ref: PaneRef
    cause: str


Touch = Ring | Start | Signal |''',
    )
    perform = "fleet/supervisor/perform.py"
    checkout.edit(perform, "import Action, Keep,", "import Action, Keep, Ring,")
    checkout.edit(
        perform,
        "            case Keep():\n",
        "            case Ring():\n                return Result(Outcome.DONE)\n            case Keep():\n",
    )
    checkout.edit(
        "fleet/core/agent/wedged.py",
        WEDGED,
        '    ring = Ring(case.agent.name, case.seen.pane.ref, "the bell")\n'
        f"    return Verdict(ring.cause, action=ring)\n{WEDGED}",
    )
    checkout.edit(
        "fleet/core/agent/wedged.py",
        "from fleet.core.agent.stopping import begin\n",
        "from fleet.core.effects import Ring\nfrom fleet.core.agent.stopping import begin\n",
    )
    program = """
from fleet.core.settle import settle
from fleet.supervisor.perform import Performer
[ring] = decided.effects
done = Performer(None, None, None).act(ring)
after = settle(decided.memory, ring, done, asked.now)
said |= {"outcome": done.outcome, "kept": after.memory == decided.memory}
"""
    said = checkout.python(JUDGED + program)
    assert (said["rule"], said["effects"], said["outcome"], said["kept"]) == (
        "wedged",
        ["Ring"],
        "done",
        True,
    )
    checkout.costs("effect", "wedged")


# --- a verb, a CLI --------------------------------------------------------------------------------------


def test_a_verb(checkout):
    checkout.write(
        "fleet/verbs/ring.py",
        '''
"""Ring the bell.

Example: agents.py ring --twice
"""

from __future__ import annotations

import argparse

from fleet.verbs.arguments import flag
from fleet.verbs.io import Io

GROUP = "run"
ARGUMENTS = (flag("--twice", "ring two times (default: once)"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print it."""
    io.print("ding ding" if args.twice else "ding")
    return 0
''',
    )
    checkout.edit("README.md", "| run | `up` ", "| run | `ring` `up` ")
    assert checkout.run("agents.py", "ring", "--twice") == "ding ding\n"
    assert "Ring the bell" in checkout.run("agents.py", "--help")
    assert 'ring) words="--help --config --json --twice"' in checkout.run("agents.py", "completions", "bash")
    said = checkout.python("from tools import docs\nsaid = {'page': docs.documents()['verbs.md']}")
    assert "## ring\n\nRing the bell." in said["page"]
    checkout.costs("verb", "ring")


def test_a_backend_is_one_folder():
    """tests/unit/test_new_cli.py adds one to a copy, and sees it declared, read, heard and counted."""
    assert stated()["backend"] == (1, {"fleet/backends/<name>/"})
    assert (ROOT / "tests/unit/test_new_cli.py").exists()
