"""One record a phase: R036 to R041, T84 to T86, and exactly one whatever is killed in between."""

from __future__ import annotations

import itertools
import json
import os
import signal
from contextlib import suppress

import pytest

from fleet.backends.readers import Wanted
from fleet.core.model import Price
from fleet.host.disk import RealDisk
from fleet.store.documents import Store
from fleet.tokens.books import BOOKS, PhaseMeter
from fleet.tokens.meter import Meter
from fleet.tokens.price import PriceBook
from fleet.tokens.tokenlog import TokenLog
from tests.unit.transcript_samples import claude_line, codex_lines

OPUS = "claude-opus-4-8"
PRICES = PriceBook([Price(OPUS, 10.0, 100.0, 1.0, 0.1)], library=False)
DAY = 86_400.0
START = 1_794_800_000.0


class Killed(BaseException):
    """The process is gone at this very write."""


class Fuse:
    """Counts writes; blows at the chosen one, after it, or halfway through it."""

    def __init__(self, at=None, how="before"):
        self.at, self.how, self.count = at, how, 0

    def write(self, act, half=None):
        self.count += 1
        if self.count != self.at:
            return act()
        if self.how == "after":
            act()
        elif self.how == "torn" and half:
            half()
        raise Killed


class Books:
    """A store of documents that may be killed while saving; a save is atomic, as the real one's is."""

    def __init__(self, documents, fuse):
        self.documents, self.fuse = documents, fuse

    def load(self, name):
        return json.loads(self.documents[name]) if name in self.documents else None

    def save(self, name, data):
        text = json.dumps(data)
        self.fuse.write(lambda: self.documents.__setitem__(name, text))


class File:
    """A log file that may be killed while appending, leaving half a line."""

    def __init__(self, content, fuse):
        self.content, self.fuse = content, fuse

    def read(self, path, cap=0):
        return bytes(self.content)

    def append(self, path, data, *, sync):
        self.fuse.write(
            lambda: self.content.extend(data), lambda: self.content.extend(data[: len(data) // 2])
        )


def whole_lines(raw):
    """Every line of a log that can be read, duplicates included."""
    found = []
    for line in raw.splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


class Project:
    """Two agents with transcripts, and books and a log that outlive any watchdog."""

    def __init__(self, root):
        self.root = root
        self.documents, self.content = {}, bytearray()
        self.fuse = Fuse()
        self.agents = [self.agent("builder", "/proj/a"), self.agent("adversary", "/proj/b")]

    def agent(self, name, directory, kind="claude", sessions=()):
        return Wanted(name, kind, directory, "", frozenset(sessions), {"HOME": str(self.root)})

    def use(self, folder, message, output, session="s", **over):
        path = self.root / ".claude" / "projects" / folder / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as handle:
            cwd = "/proj/" + folder[-1]
            handle.write(claude_line(message, output=output, session=session, cwd=cwd, **over))
        return path

    def meter(self):
        """A watchdog that has just started."""
        log = TokenLog("logs", File(self.content, self.fuse))
        return PhaseMeter(Books(self.documents, self.fuse), log, PRICES, meter=Meter())

    def records(self):
        records = TokenLog("x", File(self.content, Fuse())).records()
        assert len(records) == len(whole_lines(bytes(self.content))), "the file itself holds a run only once"
        return records


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_phase_gets_what_was_used_between_its_begin_and_its_end(project):
    project.use("-proj-a", "before", 1000)
    meter = project.meter()
    meter.observe("lex", project.agents, START)
    project.use("-proj-a", "during", 10)
    project.use("-proj-b", "also", 20)
    [record] = meter.observe("parse", project.agents, START + 372)
    assert record["phase"] == "lex"
    assert record["duration_s"] == 372.0
    assert (record["start"], record["end"]) == (START, START + 372)
    builder = record["agents"]["builder"]
    assert {k: builder[k] for k in ("input", "output", "cache_write", "cache_read", "total")} == {
        "input": 1, "output": 10, "cache_write": 2, "cache_read": 3, "total": 16,
    }  # fmt: skip
    assert builder["models"][OPUS]["total"] == 16
    assert builder["cost"] == pytest.approx((1 * 10 + 10 * 100 + 2 * 1 + 3 * 0.1) / 1e6)
    assert record["total"] == 16 + 26
    assert record["models"][OPUS]["output"] == 30
    assert record["days"]["2026-11-16"][OPUS]["output"] == 30
    assert project.records() == [record]


def test_the_baseline_survives_a_restart_and_the_last_phase_is_written_at_the_end(project):
    project.use("-proj-a", "before", 1000)
    project.meter().observe("lex", project.agents, START)
    project.use("-proj-a", "one", 10)
    project.meter().observe("lex", project.agents, START + 50)
    project.use("-proj-a", "two", 5)
    [record] = project.meter().observe(None, project.agents, START + 100)
    assert record["agents"]["builder"]["output"] == 15
    assert project.meter().observe(None, project.agents, START + 200) == []


def test_a_phase_that_ended_while_nobody_looked_is_written_once_with_its_own_end(project):
    project.meter().observe("lex", project.agents, START)
    project.use("-proj-a", "one", 10)
    [record] = project.meter().observe("parse", project.agents, START + 5000, changed_at=START + 300)
    assert (record["phase"], record["duration_s"]) == ("lex", 300.0)
    assert project.meter().observe("parse", project.agents, START + 6000, changed_at=START + 300) == []
    assert len(project.records()) == 1


def test_the_same_phase_run_again_is_another_record(project):
    meter = project.meter()
    for number, phase in enumerate(["lex", "parse", "lex", None]):
        meter.observe(phase, project.agents, START + number)
    assert [record["phase"] for record in project.records()] == ["lex", "parse", "lex"]
    assert len({record["run"] for record in project.records()}) == 3


def test_limited_time_is_kept_beside_the_duration_also_over_a_restart(project):
    project.meter().observe("lex", project.agents, START)
    project.meter().observe("lex", project.agents, START + 100, limited=True)
    project.meter().observe("lex", project.agents, START + 150, limited=True)
    project.meter().observe("lex", project.agents, START + 400)
    project.meter().observe("lex", project.agents, START + 500, limited=True)
    [record] = project.meter().observe(None, project.agents, START + 600)
    assert (record["duration_s"], record["limited_s"]) == (600.0, 400.0)


def test_an_agent_without_a_transcript_is_null_and_never_nought(project):
    agents = [*project.agents, project.agent("demo", "/proj/d", kind="")]
    project.use("-proj-a", "one", 10)
    meter = project.meter()
    meter.observe("lex", agents, START)
    [record] = meter.observe(None, agents, START + 1)
    assert record["agents"]["builder"]["total"] == 0
    assert record["agents"]["adversary"] is None
    assert record["agents"]["demo"] is None


def test_an_agent_that_joins_late_brings_no_past_with_it(project):
    project.use("-proj-b", "past", 1000)
    meter = project.meter()
    meter.observe("lex", project.agents[:1], START)
    meter.observe("lex", project.agents, START + 10)
    project.use("-proj-b", "now", 5)
    [record] = meter.observe(None, project.agents, START + 20)
    assert record["agents"]["adversary"]["output"] == 5


def test_a_pruned_old_transcript_takes_nothing_from_the_phase(project):
    old = project.use("-proj-a", "old", 1000, "old", timestamp="2026-10-01T00:00:00Z")
    project.meter().observe("lex", project.agents, START)
    project.use("-proj-a", "new", 10, "new", timestamp="2026-11-16T05:00:00Z")
    old.unlink()
    [record] = project.meter().observe(None, project.agents, START + 10)
    assert record["agents"]["builder"]["output"] == 10


def test_an_agent_that_starts_a_new_conversation_keeps_the_old_one(project):
    """A fresh start replaces the id in state/<name>.id; what the old session used is still the agent's."""
    shared = [project.agent("a", "/proj/a", sessions=["s1"]), project.agent("b", "/proj/a")]
    project.meter().observe("lex", shared, START)
    project.use("-proj-a", "one", 10, "s1")
    project.meter().observe("lex", shared, START + 1)
    fresh = [project.agent("a", "/proj/a", sessions=["s2"]), project.agent("b", "/proj/a")]
    project.use("-proj-a", "two", 5, "s2")
    [record] = project.meter().observe(None, fresh, START + 10)
    assert record["agents"]["a"]["output"] == 15
    assert "shared" not in record


def test_a_shared_directory_is_counted_once_and_said_to_be_shared(project):
    shared = [project.agent("a", "/proj/a"), project.agent("b", "/proj/a")]
    meter = project.meter()
    meter.observe("lex", shared, START)
    project.use("-proj-a", "one", 10)
    [record] = meter.observe(None, shared, START + 10)
    assert record["shared"]["output"] == 10
    assert record["total"] == record["shared"]["total"] == 16


def test_codex_agents_are_measured_too(project):
    agent = project.agent("cx", "/proj/a", kind="codex")
    path = project.root / ".codex" / "sessions" / "2026" / "11" / "16" / "rollout-1.jsonl"
    path.parent.mkdir(parents=True)
    lines = list(codex_lines(5, 9, model="nobody-knows-1"))
    path.write_bytes(b"".join(lines[:-1]))
    meter = project.meter()
    meter.observe("lex", [agent], START)
    path.write_bytes(b"".join(lines))
    [record] = meter.observe(None, [agent], START + 1)
    assert record["agents"]["cx"]["output"] == 4
    assert record["cost"] is None, "a model without a price has no figure"


def test_the_running_phase_can_be_seen_without_changing_anything(project):
    project.meter().observe("lex", project.agents, START)
    project.use("-proj-a", "one", 10)
    before = dict(project.documents)
    live = project.meter().live(project.agents, START + 60)
    assert live is not None
    assert (live["phase"], live["live"], live["duration_s"]) == ("lex", True, 60.0)
    assert live["agents"]["builder"]["output"] == 10
    assert project.documents == before
    assert project.records() == []


def test_the_books_stay_small_however_old_the_project_is(project):
    for day in range(300):
        stamp = f"20{10 + day // 28 // 12:02}-{1 + day // 28 % 12:02}-{1 + day % 28:02}T00:00:00Z"
        project.use("-proj-a", f"m{day}", 1, timestamp=stamp)
    project.meter().observe("lex", project.agents, START)
    assert len(project.documents[BOOKS]) < 2000


def test_a_sweep_that_is_not_through_says_nothing_yet(project):
    for number in range(4):
        project.use("-proj-a", f"m{number}", 1000, f"s{number}")
    meter = project.meter()
    assert meter.observe("lex", project.agents, START, budget=1) == []
    assert meter.running() is None
    for _ in range(10):
        meter.observe("lex", project.agents, START + 1, budget=1)
    [record] = meter.observe(None, project.agents, START + 2)
    assert record["total"] == 0


def scenario(project, fuse):
    """Three phases and the end, with usage before each look; restarted whenever it is killed."""
    project.fuse = fuse
    looks = [("lex", 0), ("lex", 10), ("parse", 20), ("parse", 30), ("emit", 40), (None, 50), (None, 60)]
    meter = project.meter()
    for number, (phase, second) in enumerate(looks):
        project.use("-proj-a", f"m{number}", 10)
        while True:
            try:
                meter.observe(phase, project.agents, START + second)
                break
            except Killed:
                meter = project.meter()  # the next watchdog looks at the same moment again


def writes_of_a_quiet_run(tmp_path):
    project = Project(tmp_path / "quiet")
    fuse = Fuse()
    scenario(project, fuse)
    return fuse.count


@pytest.mark.parametrize("how", ["before", "after", "torn"])
def test_killed_at_any_write_each_phase_has_exactly_one_record(tmp_path, how):
    count = writes_of_a_quiet_run(tmp_path)
    assert count > 8
    for at in range(1, count + 1):
        project = Project(tmp_path / f"{how}-{at}")
        scenario(project, Fuse(at, how))
        records = project.records()
        assert [record["phase"] for record in records] == ["lex", "parse", "emit"], (how, at)
        assert sum(record["agents"]["builder"]["output"] for record in records) == 50, (how, at)


class Fuses(Fuse):
    """Blows at several writes."""

    def __init__(self, points):
        super().__init__()
        self.points = dict(points)

    def write(self, act, half=None):
        self.at, self.how = (
            (self.count + 1, self.points[self.count + 1]) if self.count + 1 in self.points else (None, "")
        )
        return super().write(act, half)


def test_killed_at_any_pair_of_writes_each_phase_has_exactly_one_record(tmp_path):
    count = writes_of_a_quiet_run(tmp_path)
    hows = itertools.cycle(itertools.product(["before", "after", "torn"], repeat=2))
    for (first, second), how in zip(itertools.combinations(range(1, count + 2), 2), hows, strict=False):
        project = Project(tmp_path / f"{first}-{second}")
        scenario(project, Fuses({first: how[0], second: how[1]}))
        assert [record["phase"] for record in project.records()] == ["lex", "parse", "emit"], (
            first,
            second,
            how,
        )


class KillingDisk(RealDisk):
    """The real file system under a process that kills itself before its nth change."""

    def __init__(self, at):
        self.left = at

    def _step(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, *args, **kwargs):
        self._step()
        super().write(*args, **kwargs)

    def rename(self, *args, **options):
        self._step()
        super().rename(*args, **options)

    def append(self, path, data, *, sync):
        self._step()
        with open(path, "ab") as handle:
            handle.write(data[: len(data) // 2])
        self._step()
        with open(path, "ab") as handle:
            handle.write(data[len(data) // 2 :])
        self._step()


def test_a_real_process_killed_minus_nine_anywhere_leaves_exactly_one_record(tmp_path):
    survived = False
    for at in range(1, 40):
        root = tmp_path / str(at)
        project = Project(root)
        project.use("-proj-a", "one", 10)
        state, log = str(root / "state"), str(root)
        (root / "state").mkdir()

        def run(disk, state=state, log=log, agents=project.agents):
            for phase, second in (("lex", 0), ("parse", 10), (None, 20)):
                meter = PhaseMeter(Store(disk, state, lambda: START), TokenLog(log, disk), PRICES)
                meter.observe(phase, agents, START + second)

        child = os.fork()
        if child == 0:
            try:
                run(KillingDisk(at))
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        survived = os.WIFEXITED(status)
        books = Store(RealDisk(), state, lambda: START).load(BOOKS) or {}
        open_phase = (books.get("open") or {}).get("phase")
        later = {"lex": ("parse", None), "parse": (None,)}.get(open_phase, ())
        meter = PhaseMeter(Store(RealDisk(), state, lambda: START), TokenLog(log, RealDisk()), PRICES)
        meter.recover()
        for phase in later:
            meter.observe(phase, project.agents, START + 30)
        written = root / "token-log.jsonl"
        raw = written.read_bytes() if written.exists() else b""
        phases = [record["phase"] for record in whole_lines(raw)]
        assert len(phases) == len(set(phases)), (at, phases)
        assert set(phases) <= {"lex", "parse"}
        assert "lex" in phases or open_phase is None
        if survived:
            assert phases == ["lex", "parse"]
            break
    assert survived, "the scenario has more writes than were tried"


def test_torn_and_foreign_lines_are_passed_over(tmp_path):
    path = tmp_path / "token-log.jsonl"
    good = {"v": 1, "run": "1", "phase": "lex", "agents": {"a": 5}, "total": 5}
    path.write_bytes(
        b'\xff\xfe\n{"phase": "torn"' + b"\n" + json.dumps(good).encode() + b"\n[1]\nnull\n{}\n" + b'{"ph'
    )
    log = TokenLog(str(tmp_path), RealDisk())
    assert log.records() == [good]
    assert not log.write(good)
    assert log.write({**good, "run": "2"})
    assert [record["run"] for record in log.records()] == ["1", "2"]


def test_a_new_log_is_readable_by_its_owner_only(tmp_path):
    log = TokenLog(str(tmp_path), RealDisk())
    assert log.write({"v": 1, "run": "1", "phase": "lex"})
    assert os.stat(log.path).st_mode & 0o777 == 0o600


def test_no_log_yet_is_no_record(tmp_path):
    assert TokenLog(str(tmp_path / "none"), RealDisk()).records() == []
