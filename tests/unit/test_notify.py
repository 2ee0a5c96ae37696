"""What is news, and that it is told once: rules over events, and the queue over a disk in memory."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config import parse
from fleet.core.model import NOTICES, Notify
from fleet.core.words import EventType
from fleet.extras.notify import notices, targets
from fleet.extras.notify.notices import NOTHING_YET, from_event, wanted
from fleet.extras.notify.notifier import BACK_OFF_S, BURST, Notifier, is_quiet
from fleet.extras.notify.runner import standing_still
from fleet.extras.notify.targets import Dispatch, deliver, label, shown
from fleet.host.clock import RealClock
from fleet.host.disk import RealDisk
from fleet.store.documents import Store
from fleet.store.eventlog import Bookmark, Events, end_of, read, read_on
from tests.tmux.project import until

HEAD = '[defaults]\nsession_prefix = "p-"\nlog_dir = "log"\n[[agent]]\nname = "a"\nkind = "persistent"\n'
HEAD += 'backend = "demo"\nprompt = "go"\n'


def event(kind, agent="a", reason="why", ts=100.0, **facts):
    return {"type": kind, "agent": agent, "reason": reason, "ts": ts, "facts": facts}


def shows(now, agent="a", ts=100.0, reason="X -> Y: because"):
    return event("agent.state_changed", agent, reason, ts, now=now)


def told(*records):
    """The kinds of news that these events are, in order."""
    book, kinds = NOTHING_YET, []
    for record in records:
        book, fresh = from_event(book, record)
        kinds += [n.kind for n in fresh]
    return kinds


# --- what is news -----------------------------------------------------------------------------------

STORIES = {
    "a verdict and the state it leads to are one piece of news": (
        [event("agent.failed_for_good"), shows("FATAL"), shows("FATAL", ts=200)], ["fatal"],
    ),
    "a second verdict after a reset is another": (
        [event("agent.failed_for_good"), event("agent.reset"), event("agent.failed_for_good", ts=300)],
        ["fatal", "fatal"],
    ),
    "asking is told when it begins, and again after an answer": (
        [shows("ASKING"), shows("ASKING", ts=101), shows("WORKING", ts=102), shows("ASKING", ts=103)],
        ["asking", "asking"],
    ),
    "a look that failed ends nothing": (
        [shows("ASKING"), shows("UNSEEN"), shows("UNKNOWN"), shows("ASKING", ts=110)], ["asking"],
    ),
    "a limit and its end": (
        [event("agent.limited"), shows("LIMITED"), event("agent.resumed", ts=200), shows("WORKING", ts=200)],
        ["limited", "resumed"],
    ),
    "a limit that is probed and goes on is one limit": (
        [shows("LIMITED"), shows("RETRYING"), shows("LIMITED", ts=400), event("agent.limited", ts=400)],
        ["limited"],
    ),
    "whose account was limited by another goes on without a word of its own": (
        [shows("LIMITED"), shows("IDLE", ts=300)], ["limited", "resumed"],
    ),
    "who is taken down while limited does not go on": ([shows("LIMITED"), shows("DOWN")], ["limited"]),
    "nobody goes on who was not limited": ([event("agent.resumed"), shows("WORKING")], []),
    "flapping is told once until it is over": (
        [event("agent.flapped"), shows("FLAPPING"), shows("STARTING"), shows("FLAPPING"),
         event("agent.recovered"), event("agent.flapped", ts=900)],
        ["flapping", "flapping"],
    ),
    "every gate that fails for a commit is told once": (
        [event("gate.failed", "", phase="p", commit="c1"),
         event("gate.failed", "", ts=101, phase="p", commit="c1"),
         event("gate.failed", "", ts=102, phase="p", commit="c2")],
        ["gate", "gate"],
    ),
    "phases and the end of them": (
        [event("phase.advanced", ""), event("phase.advanced", "", ts=200),
         event("sequence.completed", "", ts=300)],
        ["phase", "phase", "complete"],
    ),
    "a loop that is held is told each time it is": (
        [event("phase.held", ""), event("phase.held", "", ts=200)],
        ["held", "held"],
    ),
    "a file that is not right is told once until it is": (
        [event("config.rejected", ""), event("config.rejected", "", ts=101), event("config.loaded", ""),
         event("config.rejected", "", ts=300)],
        ["config", "config"],
    ),
    "a watchdog that cannot write": (
        [event("watchdog.degraded", ""), event("watchdog.degraded", "", ts=9),
         event("watchdog.recovered", "")],
        ["degraded"],
    ),
    "a watchdog that was brought back": ([event("watchdog.ensured", "")], ["stale"]),
    "what is routine is no news": (
        [event("agent.started"), event("agent.ready"), event("agent.died"), event("agent.healed"),
         event("watchdog.started", ""), event("watchdog.stopped", ""), event("notify.sent", ""),
         shows("IDLE")],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_a_change_is_news_and_a_repetition_is_not(story):
    records, kinds = STORIES[story]
    assert told(*records) == kinds


def test_agents_are_told_apart():
    assert told(shows("ASKING", "a"), shows("ASKING", "b"), shows("ASKING", "a")) == ["asking", "asking"]


def test_every_event_that_is_news_exists_and_every_kind_can_happen():
    named = {*notices.OPENS, *notices.CLOSES, *notices.POINTS}
    assert named <= {str(e) for e in EventType}
    kinds = {*notices.OPENS.values(), *notices.POINTS.values(), *notices.SHOWN.values(), "resumed", "drift"}
    assert kinds == set(NOTICES)
    assert set(NOTICES) < set(notices.TITLES)


def test_who_asks_for_nothing_particular_is_told_what_needs_a_person():
    assert wanted("fatal", ())
    assert wanted("held", ())
    assert not wanted("limited", ())
    assert wanted("limited", ("limited",))
    assert not wanted("fatal", ("limited",))


def test_drift_is_told_when_the_list_changes_and_not_again():
    book, first = notices.drifted(NOTHING_YET, "a", ["model"], 1.0)
    book, same = notices.drifted(book, "a", ["model"], 2.0)
    book, more = notices.drifted(book, "a", ["model", "dir"], 3.0)
    book, none = notices.drifted(book, "a", [], 4.0)
    book, again = notices.drifted(book, "a", ["model"], 5.0)
    assert [len(n) for n in (first, same, more, none, again)] == [1, 0, 1, 0, 1]
    assert "model" in first[0].text


# --- reading on -------------------------------------------------------------------------------------


def journal(tmp_path, **more):
    return Events(RealDisk(), str(tmp_path / "log" / "events.jsonl"), time.time, **more)


def test_reading_goes_on_where_it_stopped_also_over_a_rotation(tmp_path, monkeypatch):
    monkeypatch.setattr("fleet.store.eventlog.CAP", 2000)
    events, place, seen = journal(tmp_path), Bookmark(), []
    for number in range(60):
        events.record("agent.ready", agent=f"n{number}")
        if number % 7 == 0:
            records, place = read_on(events.path, place)
            seen += [r["agent"] for r in records]
    records, place = read_on(events.path, place)
    assert [*seen, *(r["agent"] for r in records)] == [f"n{n}" for n in range(60)]
    assert read_on(events.path, place)[0] == []


def test_a_long_file_that_was_rotated_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("fleet.store.eventlog.CAP", 20_000)
    monkeypatch.setattr("fleet.reading.BLOCK", 2_000)
    events, place = journal(tmp_path), Bookmark()
    for number in range(150):
        events.record("agent.ready", agent=f"n{number}")
    seen = []
    while records := (got := read_on(events.path, place))[0]:
        place, seen = got[1], [*seen, *(r["agent"] for r in records)]
    assert seen == [f"n{n}" for n in range(150)]


def test_a_line_that_is_still_being_written_waits(tmp_path):
    path = tmp_path / "events.jsonl"
    whole = json.dumps(event("agent.ready")) + "\n"
    path.write_text(whole + whole[:20])
    records, place = read_on(str(path), Bookmark())
    assert len(records) == 1
    path.write_text(whole + whole)
    assert len(read_on(str(path), place)[0]) == 1


def test_a_first_day_begins_with_this_watchdog(tmp_path):
    events = journal(tmp_path)
    events.record("agent.flapped", agent="old")
    events.record("watchdog.started")
    events.record("agent.flapped", agent="new")
    records, _ = read_on(events.path, end_of(events.path, ("watchdog.started",)))
    assert [r["agent"] for r in records] == ["", "new"]


# --- telling ----------------------------------------------------------------------------------------


class Rig:
    """A notifier over real files, whose deliveries land in a list; `again` is its next life."""

    def __init__(self, tmp_path, *targets_, after=0.0):
        text = (
            f"[watchdog]\nnotify_after = {after}\n" + HEAD + "".join(f"[[notify]]\n{t}\n" for t in targets_)
        )
        self.fleet = parse(text, str(tmp_path / "agents.toml"))
        self.events = Events(RealDisk(), os.path.join(self.fleet.log_dir, "events.jsonl"), time.time)
        self.sent: list[tuple[str, Dispatch]] = []
        self.answers: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.again()

    def again(self):
        store = Store(RealDisk(), os.path.join(self.fleet.log_dir, "state"), time.time)
        self.teller = Notifier(self.fleet, store, self.events, self.deliver, RealClock())

    def deliver(self, target, message):
        if target.command != "quick":
            assert self.gate.wait(20)
        self.sent.append((target.command or target.to, message))
        return self.answers.pop(0) if self.answers else ""

    def turn(self, now=None, *looks):
        """Turn until nothing is on its way."""
        now = time.time() if now is None else now
        self.teller.turn(now, looks)
        until(lambda: self.settled(now), 20)

    def settled(self, now):
        if all(f.done() for f, _ in self.teller._flying.values()):
            self.teller.turn(now)
        return not self.teller.busy()

    def kinds(self):
        return [m.kind for _, m in self.sent]


COMMAND = 'to = "command"\ncommand = "one"\n'


def test_each_piece_of_news_is_told_once_however_often_we_are_restarted(tmp_path):
    rig = Rig(tmp_path, COMMAND + 'on = ["fatal", "phase", "limited", "resumed"]')
    steps = [
        ("agent.failed_for_good", "a"), ("agent.limited", "b"),
        ("phase.advanced", ""), ("agent.resumed", "b"),
    ]  # fmt: skip
    for kind, agent in steps:
        rig.events.record(kind, agent=agent, reason="why")
        rig.turn()
        rig.again()  # the watchdog was restarted, and says it all again
        rig.events.record("watchdog.started")
        rig.events.record("agent.state_changed", agent="a", reason="STARTING -> FATAL: why", now="FATAL")
        rig.turn()
    rig.again()
    rig.turn()
    assert rig.kinds() == ["fatal", "limited", "phase", "resumed"]


def test_a_message_that_was_queued_but_not_sent_is_sent_by_the_next_life(tmp_path):
    rig = Rig(tmp_path, COMMAND)
    rig.gate.clear()
    rig.events.record("agent.failed_for_good", agent="a")
    rig.teller.turn(time.time())  # killed here: on its way, never seen to arrive
    rig.again()
    rig.sent.clear()
    rig.gate.set()
    rig.turn()
    ids = {m.notices[0].id for _, m in rig.sent}
    assert set(rig.kinds()) == {"fatal"}
    assert len(ids) == 1, "what may be told twice carries the same id"


def test_a_question_is_told_when_it_has_lasted_and_not_when_it_was_answered(tmp_path):
    rig, now = Rig(tmp_path, COMMAND, after=60.0), time.time() + 1
    rig.events._wall = lambda: now
    rig.events.record("agent.state_changed", agent="quick", reason="IDLE -> ASKING: trust?", now="ASKING")
    rig.events.record("agent.state_changed", agent="slow", reason="IDLE -> ASKING: trust?", now="ASKING")
    rig.turn(now)
    rig.events.record("agent.state_changed", agent="quick", reason="ASKING -> IDLE: ok", now="IDLE")
    rig.turn(now + 30)
    rig.again()
    rig.turn(now + 59)
    assert rig.kinds() == []
    rig.turn(now + 62)
    rig.turn(now + 500)
    assert [(m.kind, m.notices[0].agent) for _, m in rig.sent] == [("asking", "slow")]


def test_after_makes_everything_that_can_pass_wait_but_not_what_has_happened(tmp_path):
    rig, now = Rig(tmp_path, COMMAND + 'on = ["limited", "phase"]\nafter = 100'), time.time() + 1
    rig.events._wall = lambda: now
    rig.events.record("agent.limited", agent="a")
    rig.events.record("phase.advanced")
    rig.turn(now)
    assert rig.kinds() == ["phase"]
    rig.turn(now + 101)
    assert rig.kinds() == ["phase", "limited"]


def test_a_failed_message_is_tried_again_and_then_given_up_and_both_are_on_record(tmp_path):
    rig, now = Rig(tmp_path, COMMAND + "retries = 2"), time.time() + 1
    rig.answers = ["no route", "no route", "no route"]
    rig.events.record("agent.failed_for_good", agent="a")
    for at in (0, 1, BACK_OFF_S[0] + 1, BACK_OFF_S[0] + 2, 4 * BACK_OFF_S[0], 100 * BACK_OFF_S[0]):
        rig.turn(now + at)
    assert len(rig.sent) == 3
    failed = [r for r in read(RealDisk(), rig.events.path) if r["type"] == "notify.failed"]
    assert len(failed) == 1
    assert "given up after 3 tries: no route" in failed[0]["reason"]
    rig.events.record("agent.failed_for_good", agent="b")
    rig.turn(now + 9000)
    assert [r["type"] for r in read(RealDisk(), rig.events.path)][-1] == "notify.sent"


def test_a_target_that_hangs_delays_nobody_else(tmp_path):
    rig = Rig(tmp_path, COMMAND, 'to = "command"\ncommand = "quick"')
    rig.gate.clear()
    rig.events.record("agent.failed_for_good", agent="a")
    rig.teller.turn(time.time())
    until(lambda: [who for who, _ in rig.sent] == ["quick"])
    rig.events.record("agent.failed_for_good", agent="b")
    until(lambda: rig.teller.turn(time.time()) or [who for who, _ in rig.sent] == ["quick"] * 2)
    rig.gate.set()
    until(lambda: rig.teller.turn(time.time()) or [who for who, _ in rig.sent].count("one") == 2)


def test_quiet_hours_hold_everything_back_for_one_digest(tmp_path):
    noon = time.mktime((2026, 6, 1, 12, 0, 0, 0, 0, -1))
    hour = time.strftime("%H:%M", time.localtime(noon + 3600))
    rig = Rig(tmp_path, COMMAND + f'quiet = "11:00-{hour}"')
    rig.events._wall = lambda: noon
    for agent in ("a", "b"):
        rig.events.record("agent.failed_for_good", agent=agent, reason="broken")
    rig.turn(noon)
    rig.again()
    rig.turn(noon + 60)
    assert rig.sent == []
    rig.turn(noon + 3601)
    assert rig.kinds() == ["digest"]
    assert rig.sent[0][1].text == "a: needs you: it cannot run: broken\nb: needs you: it cannot run: broken"
    rig.turn(noon + 3700)
    assert len(rig.sent) == 1


QUIET = [("22:00-07:00", "23:30", True), ("22:00-07:00", "06:59", True), ("22:00-07:00", "07:00", False),
         ("09:00-17:00", "09:00", True), ("09:00-17:00", "17:00", False), ("", "03:00", False)]  # fmt: skip


@pytest.mark.parametrize(("span", "clock", "quiet"), QUIET)
def test_quiet_hours_may_cross_midnight(span, clock, quiet):
    hours, minutes = map(int, clock.split(":"))
    assert is_quiet(span, time.mktime((2026, 6, 1, hours, minutes, 0, 0, 0, -1))) is quiet


def test_a_flood_is_one_message(tmp_path):
    rig = Rig(tmp_path, COMMAND)
    for number in range(BURST + 197):
        rig.events.record("agent.failed_for_good", agent=f"n{number}", reason="down")
    rig.turn()
    assert rig.kinds() == ["digest"]
    assert len(rig.sent[0][1].notices) == BURST + 197
    assert rig.sent[0][1].text.endswith("and 180 more")


def test_a_target_that_leaves_the_file_takes_its_queue_with_it(tmp_path):
    rig, now = Rig(tmp_path, COMMAND), time.time() + 1
    rig.answers = ["down"]
    rig.events.record("agent.failed_for_good", agent="a")
    rig.turn(now)
    assert len(rig.teller.memory.queue) == 1
    rig.teller.fleet = Rig(tmp_path / "other", 'to = "desktop"').fleet
    rig.teller.turn(now + 1)
    assert rig.teller.memory.queue == ()


def test_news_of_the_day_before_yesterday_is_none(tmp_path):
    rig = Rig(tmp_path, COMMAND)
    rig.events.record("agent.failed_for_good", agent="a")
    rig.turn(time.time() + 200_000)
    assert rig.sent == []


def test_two_who_want_the_same_are_both_told(tmp_path):
    rig = Rig(tmp_path, COMMAND, 'to = "desktop"', 'to = "command"\ncommand = "other"\non = ["gate"]')
    rig.events.record("agent.failed_for_good", agent="a")
    rig.turn()
    assert sorted(who for who, _ in rig.sent) == ["desktop", "one"]


# --- the way to a person ----------------------------------------------------------------------------

SECRET = "ghp" + "_0123456789abcdefghijABCDEFGHIJ012345"
HOSTILE = f"\x1b]0;owned\x07\x1b[31m[red]<b>&amp;\u202ekrow\u200b\nsecond line {SECRET}"


def message(text="why", kind="fatal", agent="a"):
    return Dispatch("p", (notices.Notice("id", kind, agent, 5.0, text),))


def test_what_agents_wrote_arrives_as_one_harmless_line():
    for text in (message(HOSTILE).text, message(agent=HOSTILE).title, shown(HOSTILE)):
        assert text.isprintable()
        assert "[red]<b>&amp;krow second line" in text
        assert SECRET not in text


@given(st.text())
def test_no_text_whatever_can_steer_a_terminal(text):
    assert shown(text).isprintable()


def test_a_command_reads_the_message_as_json(tmp_path):
    out = tmp_path / "told"
    target = Notify("command", command=f"cat > {out}; test $HOOK = here", url_env="HOOK")
    environ = {"PATH": os.environ["PATH"], "HOOK": "here"}
    assert deliver(target, message(HOSTILE), environ, str(tmp_path)) == ""
    document = json.loads(out.read_text())
    assert document["kind"] == "fatal"
    assert document["notices"][0]["id"] == "id"
    assert "\x1b" not in out.read_text()


@pytest.mark.parametrize(
    ("command", "why"),
    [("echo nope; exit 3", "exit 3: nope"), ("kill -9 $$", "exit -9: it said nothing"),
     ("echo $MY_TOKEN >&2; exit 1", "exit 1: [redacted]")],
)  # fmt: skip
def test_a_command_that_fails_says_why_without_its_secrets(tmp_path, command, why):
    environ = {"PATH": os.environ["PATH"], "MY_TOKEN": "correct-horse-battery"}
    assert deliver(Notify("command", command=command), message(), environ, str(tmp_path)) == why


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(targets, "TIMEOUT_S", 0.3)
    mark = tmp_path / "pid"
    command = f"sh -c 'echo $$ > {mark}; exec sleep 1000' & wait"
    why = deliver(Notify("command", command=command), message(), os.environ, str(tmp_path))
    assert "did not end within" in why
    pid = int(mark.read_text())
    until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())


def test_the_desktop_gets_text_and_not_markup(tmp_path):
    fake = tmp_path / "notify-send"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\n')
    fake.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert deliver(Notify("desktop"), message("-x <b>bold</b>", agent="--help"), environ, str(tmp_path)) == ""
    said = (tmp_path / "said").read_text().splitlines()
    assert said[said.index("--") + 1 :] == [
        "p · --help: needs you: it cannot run",
        "-x &lt;b&gt;bold&lt;/b&gt;",
    ]
    assert "neither notify-send nor" in deliver(
        Notify("desktop"), message(), {"PATH": "/none"}, str(tmp_path)
    )


def test_an_address_comes_from_the_environment_and_is_never_shown(tmp_path):
    target = Notify("url", url_env="HOOK")
    assert "HOOK is not set" in deliver(target, message(), {}, ".")
    for address in ("nonsense-address-of-mine", "json://user:s3cret-pass@127.0.0.1:1/path-that-is-secret"):
        why = deliver(target, message(), {"HOOK": address}, ".")
        assert why
        assert not any(word in why for word in ("s3cret", "path-that", "nonsense-address"))
    assert label(0, target) == "1:url $HOOK"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what apprise imports
def test_a_plain_webhook_is_told_how_it_is_written():
    why = deliver(Notify("url", url_env="HOOK"), message(), {"HOOK": "https://127.0.0.1/secret"}, ".")
    assert "jsons://HOST/PATH" in why
    assert "secret" not in why


# --- who watches the watchdog -----------------------------------------------------------------------


def test_a_fleet_that_should_be_up_without_a_watchdog_is_noticed(tmp_path):
    rig = Rig(tmp_path, COMMAND)
    state = os.path.join(rig.fleet.log_dir, "state")
    store = Store(RealDisk(), state, time.time)
    assert standing_still(rig.fleet, state, RealClock()) == "", "nobody wants it up"
    store.save("desired", {"generation": 1, "entries": {"a": {"want": "up"}}})
    assert "no watchdog is running" in standing_still(rig.fleet, state, RealClock())
    store.save("desired", {"generation": 1, "entries": {"a": {"want": "down"}}})
    assert standing_still(rig.fleet, state, RealClock()) == ""


def test_a_watchdog_that_hangs_is_noticed_and_one_that_beats_is_not(tmp_path):
    from fleet.host.locks import WatchdogLock

    rig = Rig(tmp_path, COMMAND)
    state = os.path.join(rig.fleet.log_dir, "state")
    Store(RealDisk(), state, time.time).save("desired", {"generation": 1, "entries": {"a": {"want": "up"}}})
    beat = Path(state, "heartbeat")
    beat.touch()
    os.utime(beat, (time.time() - 1000, time.time() - 1000))
    with WatchdogLock(state, RealClock()):
        assert standing_still(rig.fleet, state, RealClock()) == "", "it has just begun"
    with WatchdogLock(state, AnHourAgo()):
        assert "the watchdog has not ticked for 1000 s" in standing_still(rig.fleet, state, RealClock())
        beat.touch()
        assert standing_still(rig.fleet, state, RealClock()) == ""


class AnHourAgo(RealClock):
    def wall(self):
        return super().wall() - 3600.0


def test_the_document_names_every_kind_and_whether_it_is_told_unasked():
    text = (Path(__file__).parents[2] / "docs" / "top-and-notify.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .* \| (yes|no) \|$", text, re.MULTILINE)
    named = {kind.strip("`"): told == "yes" for kinds, told in rows for kind in kinds.split(", ")}
    assert named == NOTICES
