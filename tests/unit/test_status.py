"""`status --json` of one fleet in each situation: what tmux says now over what the watchdog wrote down."""

from __future__ import annotations

import io
import json
import os
from types import SimpleNamespace

import pytest

from fleet import __version__, config
from fleet.core.agent.decide import Ruling
from fleet.core.loop.loop_case import LoopShown
from fleet.core.seen import Listing, PaneRef, PaneView, ServerId
from fleet.core.views import Row, row
from fleet.core.words import Detail
from fleet.host.disk import RealDisk
from fleet.host.procfs import start_of
from fleet.host.tmux.client import TmuxServer
from fleet.ports import Unavailable
from fleet.store import lastgood
from fleet.store.documents import Store
from fleet.supervisor.view import Board
from fleet.verbs import main
from fleet.verbs.io import Io
from tests.unit import cases

NOW = 1_794_800_000.0
SERVER = ServerId(7, 1)
AGENT = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\nmodel = "m"\n'
LOOP = """
[[loop.phases]]
id = "p1"
plan = "plan.md"
status = "S1.md"
[[loop.phases]]
id = "p2"
plan = "plan.md"
status = "S2.md"
"""


class Stopped:
    """A clock that stands still."""

    def wall(self):
        return NOW

    def mono(self):
        return 1000.0

    def boot(self):
        return 1000.0

    def sleep(self, seconds):
        raise AssertionError(seconds)


class Scene:
    """A project whose tmux and whose watchdog say what they are told to."""

    def __init__(self, tmp_path, monkeypatch, loop=""):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        names = "".join(map(AGENT.format, ("a", "b")))
        path = tmp_path / "agents.toml"
        path.write_text('[defaults]\nsession_prefix = "p-"\nlog_dir = "state"\n' + names + loop)
        self.fleet = config.load(str(path))
        self.state = tmp_path / "state" / "state"
        self.state.mkdir(parents=True, mode=0o700)
        lastgood.keep(RealDisk(), self.fleet.ground, path.read_text(), NOW)
        self.path, self.panes, self.foreign, self.rows, self.silent = path, [], [], {}, ""
        monkeypatch.setattr(TmuxServer, "listing", lambda _server: self._listing())
        monkeypatch.setattr(TmuxServer, "capture", lambda *_words, **_more: {})

    def _listing(self):
        if self.silent:
            raise Unavailable(self.silent)
        return Listing(SERVER, tuple(self.panes), tuple(self.foreign))

    def pane(self, name, pid=11, code=None):
        ref = PaneRef(SERVER, f"p-{name}", f"%{pid}", pid, "run")
        self.panes.append(PaneView(ref, dead=code is not None, exit_code=code, project=self.fleet.project_id))

    def want(self, **wants):
        entries = {name: {"want": want} for name, want in wants.items()}
        Store(RealDisk(), str(self.state), lambda: NOW).save("desired", {"generation": 1, "entries": entries})

    def row(self, name, state, detail, reason="why", **more):
        declared = {
            "name": name, "kind": "persistent", "role": "", "backend": "demo", "model": "m",
            "watch": "heal", "enabled": True, "desired": "up", "session": f"p-{name}", "since": NOW - 60,
            "until": None, "pid": None, "restarts": 2,
        }  # fmt: skip
        self.rows[name] = Row(**declared | {"state": state, "detail": detail, "reason": reason} | more)

    def watched(self, *, loop=None, age=0.5, version=__version__, troubles=()):
        """The watchdog lives, wrote its view, and ticked `age` seconds ago."""
        house = SimpleNamespace(path=lambda name: str(self.state / name))
        board = Board(SimpleNamespace(disk=RealDisk()), house)
        board.rows.update(self.rows)
        stamp = RealDisk().stat(str(self.path))
        facts = {"tick": 9, "at": NOW, "degraded": "", "config": ""}
        board.write(board.document(self.fleet, stamp, loop, troubles, facts))
        view = self.state / "view.json"
        view.write_text(view.read_text().replace(f'"version": "{__version__}"', f'"version": "{version}"'))
        lock = {"pid": os.getpid(), "start": start_of(os.getpid()), "since": NOW - 1000}
        (self.state / "watchdog.lock").write_text(json.dumps(lock))
        (self.state / "heartbeat").touch()
        os.utime(self.state / "heartbeat", (NOW - age, NOW - age))

    def status(self):
        out, err = io.StringIO(), io.StringIO()
        assert main.run(["status", "--json"], Io(out, err, clock=Stopped())) == 0, err.getvalue()
        return json.loads(out.getvalue())


@pytest.fixture
def scene(tmp_path, monkeypatch):
    return Scene(tmp_path, monkeypatch)


@pytest.fixture
def loop(tmp_path, monkeypatch):
    (tmp_path / "plan.md").write_text("plan")
    return Scene(tmp_path, monkeypatch, LOOP)


def words(facts, *keys):
    return {r["name"]: tuple(r[key] for key in keys) for r in facts["agents"]}


def test_the_whole_document_of_a_quiet_fleet(scene):
    scene.pane("a")
    scene.want(a="up", b="down")
    scene.row("a", "RUNNING", "WORKING", "its screen says working", pid=11, phase="p1", rule="sight")
    scene.row("b", "STOPPED", "DOWN", "not wanted", desired="down")
    scene.watched()
    facts = scene.status()
    row = facts["agents"][0]
    row.pop("account", None)
    assert row == {
        "name": "a", "kind": "persistent", "role": "", "backend": "demo", "model": "m",
        "watch": "heal", "enabled": True, "desired": "up", "session": "p-a", "state": "RUNNING",
        "detail": "WORKING", "reason": "its screen says working", "since": NOW - 60, "until": None,
        "pid": 11, "restarts": 2, "drift": [], "phase": "p1", "rule": "sight", "messages": 0,
    }  # fmt: skip
    assert words(facts, "state", "detail", "desired")["b"] == ("STOPPED", "DOWN", "down")
    assert facts["watchdog"] == {
        "state": "running", "pid": os.getpid(), "last_tick": NOW - 0.5, "age": 0.5,
        "version": __version__, "degraded": "",
    }  # fmt: skip
    assert facts["config"] == {"source": "file", "cause": "", "problems": []}
    assert facts["project"]["prefix"] == "p-"
    assert (facts["version"], facts["loop"], facts["services"]) == (__version__, None, [])
    assert (facts["orphans"], facts["problems"]) == ([], [])


ROWS = {
    # what the watchdog wrote of it, what tmux says now: what is shown
    "running": (("RUNNING", "IDLE"), "alive", ("RUNNING", "IDLE", "why", 11)),
    "unreadable": (("UNKNOWN", "UNKNOWN"), "alive", ("UNKNOWN", "UNKNOWN", "why", 11)),
    "limited": (("RUNNING", "LIMITED"), "alive", ("RUNNING", "LIMITED", "why", 11)),
    "paused": (("RUNNING", "PAUSED"), "alive", ("RUNNING", "PAUSED", "why", 11)),
    "backoff": (("DEAD", "BACKOFF"), "dead", ("DEAD", "BACKOFF", "why", None)),
    "limited and dead": (("DEAD", "LIMITED"), "gone", ("DEAD", "LIMITED", "why", None)),
    "fatal": (("FATAL", "FATAL"), "gone", ("FATAL", "FATAL", "why", None)),
    "done": (("STOPPED", "DONE"), "gone", ("STOPPED", "DONE", "why", None)),
    "died just now": (("RUNNING", "WORKING"), "dead", ("DEAD", "EXITED", "exited with 3", None)),
    "gone just now": (("RUNNING", "WORKING"), "gone", ("DEAD", "EXITED", "not running", None)),
    "back just now": (("DEAD", "BACKOFF"), "alive", ("RUNNING", "STARTING", "why", 11)),
    "foreign": (
        ("UNKNOWN", "FOREIGN"),
        "foreign",
        ("UNKNOWN", "FOREIGN", "a session of this name is not ours", None),
    ),
}


@pytest.mark.parametrize(("told", "pane", "shown"), ROWS.values(), ids=ROWS)
def test_tmux_says_whether_it_lives_and_the_watchdog_why(scene, told, pane, shown):
    if pane == "foreign":
        scene.foreign.append("p-a")
    elif pane != "gone":
        scene.pane("a", code=3 if pane == "dead" else None)
    scene.want(a="up")
    scene.row("a", *told)
    scene.row("b", "STOPPED", "DOWN", desired="")
    scene.watched()
    facts = scene.status()
    assert words(facts, "state", "detail", "reason", "pid")["a"] == shown
    bad = told[0] in {"DEAD", "FATAL"} or told[1] in {"UNKNOWN", "FOREIGN"}
    assert [p.partition(":")[0] for p in facts["problems"]] == ["a"] * bad


def test_what_was_taken_down_a_moment_ago_is_stopped(scene):
    scene.want(a="down")
    scene.row("a", "RUNNING", "WORKING")
    scene.row("b", "STOPPED", "DOWN")
    scene.watched()
    assert words(scene.status(), "state", "desired")["a"] == ("STOPPED", "down")


def test_a_session_that_the_file_does_not_name_is_a_problem(scene):
    scene.pane("c", 13)
    scene.row("a", "STOPPED", "DOWN")
    scene.row("b", "STOPPED", "DOWN")
    scene.watched()
    facts = scene.status()
    assert facts["orphans"] == [{"name": "c", "session": "p-c", "pid": 13}]
    assert [p for p in facts["problems"] if "`agents.py down c` stops it" in p]


def test_a_session_that_was_renamed_by_hand_is_still_the_agents(scene):
    scene.pane("other")
    scene.want(a="up")
    scene.row("a", "RUNNING", "IDLE", pid=11)
    scene.row("b", "STOPPED", "DOWN")
    scene.watched()
    facts = scene.status()
    assert words(facts, "state", "pid")["a"] == ("RUNNING", 11)
    assert facts["orphans"] == []


def test_what_tmux_does_not_tell_is_unknown(scene):
    scene.silent = "tmux did not answer"
    scene.want(a="up")
    scene.row("a", "RUNNING", "WORKING")
    scene.row("b", "STOPPED", "DOWN")
    scene.watched()
    facts = scene.status()
    assert set(words(facts, "state", "detail", "reason").values()) == {
        ("UNKNOWN", "UNSEEN", "tmux did not answer")
    }
    assert facts["problems"][0] == "tmux: tmux did not answer"


def test_what_it_runs_that_the_file_no_longer_says_is_a_problem(scene):
    scene.pane("a")
    scene.want(a="up")
    scene.row("a", "RUNNING", "IDLE", drift=("model",))
    scene.row("b", "STOPPED", "DOWN")
    scene.watched(troubles=["store: odd"])
    facts = scene.status()
    assert words(facts, "drift")["a"] == (["model"],)
    assert facts["problems"] == ["store: odd", "a: runs with other values than the file says: model"]


def test_what_does_not_run_differs_from_no_file(scene):
    scene.want(a="up")
    scene.row("a", "FATAL", "FATAL", drift=("backend",))
    scene.row("b", "STOPPED", "DOWN")
    scene.watched()
    facts = scene.status()
    assert words(facts, "state", "drift")["a"] == ("FATAL", [])
    assert [text for text in facts["problems"] if "file says" in text] == []


@pytest.mark.parametrize(
    ("change", "drift"),
    [({}, ("bin",)), ({"pane": cases.dead()}, ()), ({"pane": None, "blind": "x"}, ("bin",))],
)
def test_the_row_of_what_may_run_says_how_it_differs_from_the_file(change, drift):
    shown = Ruling("fatal", "why", Detail.FATAL)
    assert row(cases.AGENT, cases.seen(**change), cases.READY, shown, ("bin",)).drift == drift


LOOPS = {
    "runs": (LoopShown("p1", state="p1: not done"), 0, (0, "p1", 2, False, "", "p1: not done")),
    "held": (LoopShown("p2", held="no plan"), 1, (1, "p2", 2, False, "no plan", "")),
    "complete": (LoopShown("", complete=True), 2, (2, "", 2, True, "", "")),
}


@pytest.mark.parametrize(("told", "index", "shown"), LOOPS.values(), ids=LOOPS)
def test_where_the_loop_stands(loop, told, index, shown):
    (loop.state / loop.fleet.loop.state_file).write_text(f"{index}\n")
    if told.complete:
        (loop.state.parent / "SEQUENCE-COMPLETE").touch()
    loop.row("a", "STOPPED", "DOWN")
    loop.row("b", "STOPPED", "DOWN")
    loop.watched(loop=told)
    assert tuple(loop.status()["loop"].values()) == shown


def test_a_watchdog_that_hangs_is_stale_and_what_it_wrote_is_shown(scene):
    scene.pane("a")
    scene.want(a="up")
    scene.row("a", "RUNNING", "LIMITED", until=NOW + 600)
    scene.row("b", "STOPPED", "DOWN")
    scene.watched(age=600.0)
    facts = scene.status()
    assert (facts["watchdog"]["state"], facts["watchdog"]["age"]) == ("stale", 600.0)
    assert words(facts, "state", "detail", "until")["a"] == ("RUNNING", "LIMITED", NOW + 600)
    assert facts["problems"] == ["watchdog: no tick for 600.0 s: run `agents.py ensure`"]


def test_a_watchdog_of_another_version_is_named(scene):
    scene.row("a", "STOPPED", "DOWN")
    scene.row("b", "STOPPED", "DOWN")
    scene.watched(version="0.0.0")
    facts = scene.status()
    assert facts["watchdog"]["version"] == "0.0.0"
    assert [p for p in facts["problems"] if "runs version 0.0.0" in p]
    assert words(facts, "state", "detail")["a"] == ("STOPPED", "DOWN")


def test_without_a_watchdog_what_lives_is_unwatched_and_what_is_not_there_is_dead(scene):
    scene.pane("a")
    scene.pane("b", 12, code=3)
    scene.want(a="up", b="up")
    facts = scene.status()
    assert words(facts, "state", "detail", "pid") == {
        "a": ("RUNNING", "UNWATCHED", 11),
        "b": ("DEAD", "EXITED", None),
    }
    assert words(facts, "reason")["b"] == ("exited with 3",)
    assert facts["watchdog"] == {
        "state": "stopped", "pid": None, "last_tick": None, "age": None, "version": "", "degraded": "",
    }  # fmt: skip
    assert facts["problems"] == [
        "watchdog: not running, no agent is restarted: run `agents.py ensure` or `up`",
        "b: dead: exited with 3",
    ]


def test_a_fleet_that_was_never_up_is_stopped(loop):
    facts = loop.status()
    assert words(facts, "state", "detail", "desired") == dict.fromkeys("ab", ("STOPPED", "DOWN", ""))
    assert tuple(facts["loop"].values()) == (None, "", 2, False, "", "")
    assert facts["problems"] == []
    assert not (loop.state / "view.json").exists()


def test_a_state_that_cannot_be_read_is_told_and_the_rest_is_shown(scene):
    scene.pane("a")
    scene.want(a="up")
    Store(RealDisk(), str(scene.state), lambda: NOW).save("desired", {"entries": {"a": {"want": "up"}}})
    facts = scene.status()
    assert words(facts, "state", "detail", "pid")["a"] == ("RUNNING", "UNWATCHED", 11)
    assert [p for p in facts["problems"] if "cannot be read" in p]
