"""What hardly ever happens, each as a story: damage, people who only look, a tmux that is gone for good."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from fleet.core.outline import Outline
from fleet.core.trace import explained
from fleet.core.views import Now, WatchdogState, overlaid, unjudged
from fleet.core.words import EventType
from fleet.ports import Hint
from fleet.store import eventlog
from fleet.store.house import House
from fleet.store.outbox import Outbox
from fleet.supervisor import tick
from fleet.supervisor.deputy import observer
from tests.sim.agents import SimAgent
from tests.sim.declared import LOG_DIR, Declared, toml
from tests.sim.names import ADVERSARY, BUILDER, CLOSER, PHASES, status_of
from tests.sim.repo import REPO
from tests.sim.scenes import agent, at, lives, story, told
from tests.sim.simulation import Simulation
from tests.sim.verbs import Sent
from tests.sim.work import DONE

pytestmark = pytest.mark.sim

STATE = f"{LOG_DIR}/state"


def looping(hours: float = 1.0) -> Simulation:
    """A builder and an adversary that work in short turns, and the task at the end."""
    workers = (Declared(BUILDER, kind="loop", role=BUILDER), Declared(ADVERSARY, kind="loop", role=ADVERSARY))
    closer = Declared(CLOSER, kind="task", watch="none", enabled=False)
    return story(*workers, closer, hours=hours, loop=True)


def recorded(sim: Simulation, kind: str) -> list[dict[str, Any]]:
    """Events of that type, as `events` reads them."""
    records = eventlog.read(sim.machine.disk, f"{LOG_DIR}/events.jsonl")
    return [record for record in records if record["type"] == kind]


def problems(sim: Simulation) -> str:
    """Everything that the view complains of."""
    view = json.loads(sim.machine.disk.text(f"{STATE}/view.json"))
    return json.dumps([view.get("problems"), view.get("loop"), view.get("degraded"), view.get("config")])


# -- people who only look


class Looks:
    """What `status`, `explain`, `messages` and `events` show, by a process that writes nothing."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.changed: list[object] = []
        self.loop: dict[str, Any] = {}  # as the last look told of it

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of a look of our own, with what tmux says now over them."""
        sim, seen = self.sim, self.sim.machine.disk.seen
        sim.machine.disk.seen = lambda *words: self.changed.append(words)
        try:
            return self._rows()
        finally:
            sim.machine.disk.seen = seen

    def _rows(self) -> dict[str, dict[str, Any]]:
        sim = self.sim
        world = sim.world(None)
        dog = observer(sim.fleet, world=world)
        look = dog.glance()
        document = json.loads(dog.document())
        panes = {p.ref.session: p for p in look.panes}
        wants = {name: str(entry.want) for name, entry in sim.desired.entries.items()}
        state = WatchdogState.RUNNING if sim.alive else WatchdogState.STOPPED
        foreign = frozenset(s.session for s in sim.fleet.members if look.seen[s.name].foreign)
        now = Now(panes, foreign, look.blind, wants, state)
        judged = {row["name"]: row for row in (*document["agents"], *document["services"])}
        outline: Outline = sim.fleet.outline
        for member in sim.fleet.members:
            facts = explained(member, judged[member.name], world.clock.wall())
            assert sum(rule["won"] for rule in facts["rules"]) <= 1
        assert all(overlaid(unjudged(m), now)["name"] == m.name for m in outline.members)
        self.loop = document["loop"]
        return {name: overlaid(row, now) for name, row in judged.items()}


def test_a_look_tells_what_is_so_and_changes_nothing():  # I39
    sim = story(Declared("a"), Declared("b"), Declared("c", watch="heal"), Declared("d", enabled=False))
    looks, seen = Looks(sim), []

    def look() -> None:
        rows = looks.rows()
        seen.append(tuple(rows[name]["detail"] for name in "abcd"))

    at(sim, 100, look)
    at(sim, 101, lambda: sim.machine.tmux.rename(agent(sim, "b").session, "mine"))
    at(sim, 102, look)
    at(sim, 110, sim.machine.tmux.hang)
    at(sim, 111, look)
    at(sim, 150, sim.machine.tmux.unhang)
    at(sim, 200, lambda: sim.kill_watchdog(300.0))
    at(sim, 201, lambda: agent(sim, "a").die(code=1))
    at(sim, 202, lambda: sim.type_words(("down", "c"), ["c"], Random(1)))
    at(sim, 240, lambda: sim.machine.tmux.open("sim-c", "bash"))
    at(sim, 250, look)
    at(sim, 260, lambda: sim.machine.tmux.close(sim.machine.tmux.server.sessions["sim-c"]))
    told(sim)
    assert seen[0] == ("WORKING", "WORKING", "WORKING", "DISABLED")
    assert seen[1][:1] + seen[1][2:] == ("WORKING", "WORKING", "DISABLED")
    assert set(seen[2]) == {"UNSEEN"}
    assert seen[3] == ("EXITED", "UNWATCHED", "FOREIGN", "DISABLED")
    assert looks.changed == [], "a look wrote something"


def test_a_look_at_a_loop_tells_its_phase_and_moves_nothing():  # I27 I39
    sim = looping()
    looks, seen = Looks(sim), []

    def look() -> None:
        looks.rows()
        seen.append((looks.loop["id"], looks.loop["complete"]))

    at(sim, 100, look)
    at(sim, 110, lambda: sim.set_phase(1, Random(1)))
    at(sim, 300, lambda: sim.kill_watchdog(100.0))
    at(sim, 310, look)
    told(sim)
    assert seen == [(PHASES[0], False), (PHASES[1], False)]
    assert looks.changed == []


def test_a_look_into_a_damaged_state_sets_nothing_aside():  # I20
    sim = story(Declared("a"))
    looks, seen = Looks(sim), []
    at(sim, 190, lambda: sim.kill_watchdog(100.0))
    whole: list[bytes] = []

    def damage() -> None:
        path = f"{STATE}/agents/a.json"
        whole.append(bytes(sim.machine.disk.files[path].data))
        sim.machine.disk.put(path, b"\x00" * 40)

    at(sim, 200, damage)
    at(sim, 210, lambda: seen.append(looks.rows()["a"]["detail"]))
    at(sim, 211, lambda: sim.machine.disk.put(f"{STATE}/agents/a.json", whole[0]))
    told(sim)
    assert seen == ["UNWATCHED"]
    assert looks.changed == []


def test_messages_are_listed_with_their_state_and_one_that_is_no_message_fails_alone():  # I11 I35
    sim = story(Declared("a"), Declared("b", "plain"))
    at(sim, 150, lambda: agent(sim, "a")._to_done())
    at(sim, 200, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 300, lambda: sim.machine.disk.put(f"{STATE}/outbox/a.feed.json", b'{"id": 1}'))
    at(sim, 301, lambda: sim.machine.wake(Hint.SIGNALS))
    listed: list[str] = []

    def read() -> None:
        world = sim.world(None)
        listed.extend(str(m.status) for _, m in Outbox(world.disk, STATE, world.clock.wall).listed())

    at(sim, 500, read)
    told(sim)
    assert sorted(listed) == ["confirmed", "failed"]


# -- damage


@pytest.mark.parametrize("damage", [b"\x00" * 30, b'{"v":1,"gen":1}', b"[]", None])
@pytest.mark.parametrize("name", ["agents/a", "fleet"])
def test_a_damaged_document_is_set_aside_and_no_agent_is_lost(name, damage):  # I20
    sim = story(Declared("a"), hours=0.5)
    path = f"{STATE}/{name}.json"
    aside: list[str] = []

    def break_it() -> None:
        disk = sim.machine.disk
        for one in (path, f"{path}.prev"):
            if one in disk.files:
                disk.put_pipe(one) if damage is None else disk.put(one, damage)

    def look() -> None:  # a person looks at it, and takes it away
        disk = sim.machine.disk
        aside.extend(p for p in disk.files if ".corrupt-" in p)
        for one in aside:
            disk.unlink(one)

    at(sim, 195, lambda: sim.kill_watchdog(20.0))
    at(sim, 200, break_it)
    at(sim, 600, look)
    told(sim)
    assert aside
    assert lives(sim) == 1


@pytest.mark.parametrize("what", ["index", "page", "both"])
def test_a_damaged_position_holds_the_loop_until_a_person_names_the_phase(what):  # I27
    sim = looping()
    aside: list[str] = []

    def break_it() -> None:
        disk = sim.machine.disk
        if what != "page":
            disk.put(f"{STATE}/phase-idx", b"two\n")
        if what != "index":
            disk.put(f"{STATE}/phase.json", b"{}")
            disk.put(f"{STATE}/phase.json.prev", b"{}")

    def mend() -> None:
        disk = sim.machine.disk
        disk.put(f"{STATE}/phase-idx", b"0\n")
        sim.set_phase(1, Random(1))
        aside.extend(p for p in disk.files if ".corrupt-" in p)
        for one in aside:
            disk.unlink(one)

    held: list[str] = []
    at(sim, 195, lambda: sim.kill_watchdog(20.0))
    at(sim, 200, break_it)
    at(sim, 300, lambda: held.append(problems(sim)))
    at(sim, 400, mend)
    phases: list[str] = []
    at(sim, 600, lambda: phases.extend(agent(sim, n).phase for n in (BUILDER, ADVERSARY)))
    report = sim.run()
    assert not report.failure, report.failure
    assert "phase" in held[0]
    assert phases == ["p2", "p2"]


def test_a_rule_that_breaks_costs_its_agent_a_turn_and_no_other_anything(monkeypatch):  # I35
    sim = story(Declared("a"), Declared("b"))
    sound = tick.judge
    broken = [False]

    def judge(case):
        if broken[0] and case.agent.name == "a":
            raise ValueError("a rule fell over")
        return sound(case)

    monkeypatch.setattr(tick, "judge", judge)
    at(sim, 200, lambda: broken.__setitem__(0, True))
    at(sim, 300, lambda: agent(sim, "b").die(code=1))
    seen = []
    at(sim, 600, lambda: seen.append(agent(sim, "b").alive))
    at(sim, 700, lambda: broken.__setitem__(0, False))
    at(sim, 800, lambda: agent(sim, "a").die(code=1))
    report = sim.run()
    told_of = "I35: a fault of our own: deciding on a:"
    assert report.failure.startswith(told_of), "it is told, and nothing else"
    assert seen == [True]
    assert lives(sim) == 4
    assert len(recorded(sim, EventType.WATCHDOG_STEP_FAILED)) == 1, "told once, not at every look"


def test_a_record_that_has_grown_too_large_is_put_away_and_read_on(monkeypatch):  # I22
    monkeypatch.setattr(eventlog, "CAP", 3000)
    sim = story(Declared("a"))
    for t in range(200, 2000, 200):
        at(sim, t, lambda: agent(sim, "a").die(code=1))
    told(sim)
    assert f"{LOG_DIR}/events.jsonl.1" in sim.machine.disk.files
    assert recorded(sim, "agent.healed")


def test_a_document_of_another_shape_counts_as_none_and_the_run_goes_on():  # I20
    sim = story(Declared("a"), hours=0.5)
    at(sim, 195, lambda: sim.kill_watchdog(20.0))

    def save(name: str) -> None:
        House(sim.world(None), LOG_DIR).store.save(name, {"heals": "many", "run": 7})

    for name in ("agents/a", "fleet"):
        at(sim, 200, lambda n=name: save(n))
    seen = []
    at(sim, 300, lambda: seen.append("starting from what is seen" in problems(sim)))
    told(sim)
    assert seen == [True]
    assert lives(sim) == 1


def test_a_step_that_breaks_is_told_and_the_rest_of_the_tick_is_done(monkeypatch):  # I35
    sim = story(Declared("a"))
    at(sim, 200, lambda: monkeypatch.setattr(Outbox, "news", lambda _self: 1 // 0))
    at(sim, 300, lambda: agent(sim, "a").die(code=1))
    at(sim, 400, monkeypatch.undo)
    report = sim.run()
    assert report.failure.startswith("I35: a fault of our own: taking messages in:")
    assert lives(sim) == 2


@pytest.mark.parametrize("what", ["a death", "a message"])
def test_one_write_that_fails_costs_no_agent_its_restart_and_no_message_its_receipt(what):  # I22 I35
    for write in range(1, 12):
        sim = story(Declared("a", watch="heal"), hours=0.25)
        at(sim, 150, lambda s=sim: agent(s, "a")._to_done())
        at(sim, 200, lambda s=sim, n=write: setattr(s.machine.disk, "fails_in", n))
        if what == "a death":
            at(sim, 200, lambda s=sim: agent(s, "a").die(code=1))
        else:
            at(sim, 200, lambda s=sim: s.verb("send", ["a"], Random(3)))
        told(sim)
        assert agent(sim, "a").alive, f"write {write}"


def test_the_mark_of_a_limit_that_cannot_be_read_is_set_aside():  # I5 I20
    sim = story(Declared("a"), hours=2.0)
    aside: list[str] = []

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 1200
        one.limit()

    def look() -> None:
        aside.extend(p for p in sim.machine.disk.files if ".corrupt-" in p)
        for one in aside:
            sim.machine.disk.unlink(one)

    at(sim, 300, limited)
    at(sim, 495, lambda: sim.kill_watchdog(20.0))

    def damage() -> None:  # with the memory gone, the mark would be the only word of it
        for end in ("", ".prev"):
            sim.machine.disk.files.pop(f"{STATE}/agents/a.json{end}", None)
        sim.machine.disk.put(f"{STATE}/limited-sim-a.json", b"[1")

    at(sim, 500, damage)
    at(sim, 700, look)
    told(sim)
    assert len(aside) == 1


# -- a tmux that is gone for good


@pytest.mark.parametrize("line", ["up --no-wait a", "restart --no-wait a", "down a"])
def test_a_verb_beside_a_tmux_that_does_not_answer_says_so_and_is_carried_out_later(line):  # I25 I39
    sim = story(Declared("a"), Declared("b"))
    words, verbs = tuple(line.split()), []
    at(sim, 200, lambda: verbs.append(sim.type_words(words, ["a"], Random(1))))
    at(sim, 200.02, sim.machine.tmux.hang)
    at(sim, 260, sim.machine.tmux.unhang)
    alive = []
    at(sim, 500, lambda: alive.append(agent(sim, "a").alive))
    told(sim)
    assert verbs[0].code is not None
    assert alive == [not line.startswith("down")]


def test_a_process_that_no_signal_ends_blocks_a_new_start_and_is_told():  # I1 I29
    sim = story(Declared("a"))

    def deathless() -> None:  # a process in an uninterruptible sleep
        child = sim.machine.table.spawn("helper", agent(sim, "a").proc)
        child.sid, child.handler = child.pid, lambda _signum: True
        kill = sim.machine.table.kill
        sim.machine.table.kill = lambda proc, signum: None if proc is child else kill(proc, signum)
        sim.machine.clock.after(200, lambda: setattr(sim.machine.table, "kill", kill))

    at(sim, 100, deathless)
    at(sim, 150, lambda: agent(sim, "a").die(code=1))
    at(sim, 340, lambda: [sim.machine.table.end(p, signum=9) for p in _helpers(sim)])
    told(sim)
    assert recorded(sim, EventType.AGENT_SURVIVED_STOP)


def test_a_down_that_leaves_a_process_names_it_and_fails():  # I29 I39
    sim = story(Declared("a"), Declared("b"))
    kill = sim.machine.table.kill
    verbs = []

    def deathless() -> None:
        child = sim.machine.table.spawn("helper", agent(sim, "a").proc)
        child.sid = child.pid
        sim.machine.table.kill = lambda proc, signum: None if proc is child else kill(proc, signum)

    at(sim, 100, deathless)
    at(sim, 150, lambda: verbs.append(sim.type_words(("down", "a"), ["a"], Random(1))))
    at(sim, 300, lambda: setattr(sim.machine.table, "kill", kill))
    at(sim, 301, lambda: [sim.machine.table.end(p, signum=9) for p in _helpers(sim)])
    told(sim)
    assert verbs[0].code == 1
    assert "(helper) is still there" in verbs[0].err.getvalue()


def _helpers(sim: Simulation) -> list[Any]:
    return [p for p in sim.machine.table.by_pid.values() if p.name == "helper"]


@pytest.mark.parametrize("guest", [False, True])
def test_a_bare_down_ends_the_agents_though_tmux_does_not_answer(guest):  # I25 I29
    sim = story(Declared("a"), Declared("b"))
    if guest:
        at(sim, 150, lambda: sim.machine.tmux.open("work", "bash"))
    at(sim, 200, sim.machine.tmux.hang)
    verbs, left = [], []
    at(sim, 210, lambda: verbs.append(sim.type_words(("down",), ["a", "b"], Random(1))))
    at(sim, 300, lambda: left.extend(a.name for a in sim.machine.living()))
    at(sim, 301, sim.machine.tmux.unhang)
    told(sim)
    assert left == []
    assert [v.code for v in verbs] == [1 if guest else 0]


def test_down_names_the_owner_of_a_session_that_is_not_ours():  # I2
    sim = story(Declared("a"), Declared("b"))
    verbs = []
    at(sim, 190, lambda: sim.type_words(("down", "a"), ["a"], Random(1)))
    at(sim, 240, lambda: sim.machine.tmux.open("sim-a", "bash"))
    at(sim, 250, lambda: verbs.append(sim.type_words(("down", "a"), ["a"], Random(1))))
    at(sim, 255, lambda: verbs.append(sim.type_words(("up", "--no-wait", "a"), ["a"], Random(1))))
    at(sim, 300, lambda: sim.machine.tmux.close(sim.machine.tmux.server.sessions["sim-a"]))
    told(sim)
    assert "is not ours" in verbs[0].err.getvalue()
    assert verbs[1].code != 0


# -- between a paste and its receipt


def _strands(one: SimAgent) -> None:
    one.composer = "something else entirely"


def _swallows(one: SimAgent) -> None:
    one.composer = ""


def _is_limited(one: SimAgent) -> None:
    one.account.printed = one.account.until = one.clock.wall() // 60 * 60 + 900
    one.limit()


BETWEEN = {
    "a dialog opens": SimAgent._to_ask,
    "it is limited": _is_limited,
    "another program comes": SimAgent._to_imposter,
    "its screen is strange": SimAgent._to_strange,
    "it needs a login": SimAgent._to_auth,
    "it dies": SimAgent._to_exit1,
    "it hangs": SimAgent._to_hung,
    "it begins to work": lambda one: one.begin("something of its own"),
    "the words are swallowed": _swallows,
    "other words stand there": _strands,
    "a person writes on": lambda one: one.human_types(" and also"),
}


@pytest.mark.parametrize(("backend", "after"), [("clod", 0.0), ("clod", 0.3), ("opal", 0.0), ("hook", 0.0)])
@pytest.mark.parametrize("what", BETWEEN)
def test_whatever_happens_between_a_paste_and_its_receipt_words_are_heard_once_or_not(what, backend, after):
    """I11 I12: `send` says 0 only for what was heard."""
    sim = story(Declared("a", backend, watch="heal"), hours=0.35)
    met, sent = [], []

    def happens(one: SimAgent) -> None:
        if one.alive:
            BETWEEN[what](one)

    def pasted(text: str) -> None:
        one = agent(sim, "a")
        SimAgent.paste(one, text)
        if not met:
            met.append(text)
            sim.machine.clock.after(after, lambda: happens(one))

    at(sim, 150, lambda: agent(sim, "a")._to_done())
    at(sim, 190, lambda: setattr(agent(sim, "a"), "paste", pasted))
    at(sim, 200, lambda: sent.append(sim.verb("send", ["a"], Random(3))))
    at(sim, 500, lambda: agent(sim, "a").alive and agent(sim, "a").human_finishes())
    told(sim)
    assert met


# -- the file


def test_a_file_that_has_lost_most_agents_is_believed_only_after_a_minute():  # I20
    sim = story(*(Declared(f"a{n}") for n in range(6)))
    few = [Declared("a0")]
    at(sim, 200, lambda: sim.nemesis._save(toml(few)))
    seen = []
    at(sim, 230, lambda: seen.append(len(sim.machine.living())))
    at(sim, 240, sim.nemesis._mend_config)
    at(sim, 400, lambda: sim.nemesis._save("[[agent"))
    at(sim, 500, lambda: seen.append("agents.toml" in problems(sim)))
    at(sim, 600, sim.nemesis._mend_config)
    told(sim)
    assert seen == [6, True]
    assert lives(sim) == 6


def test_an_agent_that_left_the_file_is_stopped_by_its_old_name():  # I25 I29
    sim = story(Declared("a"), Declared("b"), Declared("c"))
    verbs, left = [], []
    at(sim, 200, lambda: sim.nemesis._save(toml([Declared("a"), Declared("b")])))
    at(sim, 300, lambda: verbs.append(sim.type_words(("down", "c"), ["c"], Random(1))))
    at(sim, 400, lambda: left.extend(one.name for one in sim.machine.living()))
    at(sim, 401, sim.nemesis._mend_config)
    told(sim)
    assert [v.code for v in verbs] == [0]
    assert left == ["a", "b"]


def test_a_text_with_a_key_in_it_is_refused_and_one_in_any_script_is_heard():  # I11 I12
    sim = story(Declared("a", watch="heal"))
    texts = ("note 0 for a: ring \x07 the bell", "note 1 for a: größer, naïve ✓ 速い")
    verbs = []

    def send(text: str) -> None:
        sim.sent.append(Sent("a", text))
        verbs.append(sim.type_words(("send", "a", text, "--timeout", "300"), ["a"], Random(1)))

    at(sim, 150, lambda: agent(sim, "a")._to_done())
    for t, text in zip((200, 250), texts, strict=True):
        at(sim, t, lambda w=text: send(w))
    told(sim)
    assert verbs[0].code != 0
    assert [t for t in agent(sim, "a").received if t.startswith("note")] == [texts[1]]


# -- the loop


def test_a_person_who_begins_again_after_the_end_takes_the_mark_of_the_end_away():  # I27 I28
    sim = looping()
    marks = []

    def look() -> None:
        marks.append(f"{LOG_DIR}/SEQUENCE-COMPLETE" in sim.machine.disk.files)

    at(sim, 150, lambda: sim.set_phase(3, Random(1)))
    at(sim, 300, lambda: sim.set_phase(None, Random(1)))
    at(sim, 500, look)
    at(sim, 600, lambda: sim.type_words(("up", "--no-wait", CLOSER), [CLOSER], Random(1)))
    at(sim, 900, lambda: sim.set_phase(0, Random(1)))
    at(sim, 1200, look)
    told(sim)
    assert marks == [True, False]


def test_a_position_that_was_taken_away_is_made_anew():  # I27
    sim = looping()
    held = []

    def take() -> None:
        for name in ("phase.json", "phase.json.prev", "phase-idx"):
            path = f"{STATE}/{name}"
            if path in sim.machine.disk.files:
                sim.machine.disk.unlink(path)

    at(sim, 200, lambda: sim.kill_watchdog(5.0))
    at(sim, 201, take)
    at(sim, 400, lambda: held.append(sim.loop.phase))
    told(sim)
    assert held == ["p1"]


def test_a_claim_that_was_amended_is_told_once_more_and_an_old_one_is_not():  # I11 I13
    sim = looping()
    assert sim.work is not None
    repo = sim.work.repo

    def claim(number: int) -> None:
        repo.commit(f"claim(p1): part {number}", phase="p1", kind="claim")
        repo.push()

    def amend() -> None:
        repo.amend()
        repo.push(force=True)

    at(sim, 200, lambda: claim(1))
    at(sim, 500, lambda: claim(2))
    at(sim, 900, amend)
    told(sim)
    heard = [t for t in agent(sim, ADVERSARY).received if t.startswith(("Handoff", "git show"))]
    assert heard


def test_a_gate_that_runs_when_a_person_moves_on_is_ended():  # I27
    sim = looping()
    assert sim.work is not None
    work = sim.work

    def mark() -> None:
        work.repo.commit("claim(p2): all", phase="p2", kind="claim")
        work.done.add("p2")
        work.repo.write(status_of("p2"), DONE.encode())
        work._commit("status of p2", phase="p2")
        work.repo.push()
        sim.children.trouble = "hang"

    at(sim, 150, lambda: sim.set_phase(1, Random(1)))
    at(sim, 300, mark)
    at(sim, 420, lambda: sim.set_phase(2, Random(1)))
    at(sim, 600, lambda: setattr(sim.children, "trouble", ""))
    phases = []
    at(sim, 800, lambda: phases.extend(agent(sim, n).phase for n in (BUILDER, ADVERSARY)))
    told(sim)
    assert phases == ["p3", "p3"]


def test_refs_in_a_table_are_asked_of_git_and_a_git_that_cannot_is_a_problem():  # I13
    sim = looping(hours=2.5)
    sim.machine.temper.work = 120.0
    assert sim.work is not None
    sim.work.repo.keep_in_table()
    seen = []
    at(sim, 5000, lambda: setattr(sim.work.repo, "unreadable", True))
    at(sim, 5001, sim.work.repo._show)
    at(sim, 5300, lambda: seen.append("only git can read" in problems(sim)))
    at(sim, 5301, lambda: setattr(sim.work.repo, "unreadable", False))
    at(sim, 5302, sim.work.repo._show)
    told(sim)
    assert seen == [True]
    assert sim.loop is not None
    assert sim.loop.moves


def test_a_repository_and_a_status_that_cannot_be_read_are_problems_and_nothing_moves():  # I27
    sim = looping()
    disk = sim.machine.disk
    seen = []
    at(sim, 200, lambda: disk.dirs.add(f"{REPO}/{status_of('p1')}"))
    at(sim, 300, lambda: seen.append("plain file" in problems(sim)))
    at(sim, 301, lambda: disk.dirs.discard(f"{REPO}/{status_of('p1')}"))
    at(sim, 400, lambda: disk.dirs.discard(REPO))
    at(sim, 500, lambda: seen.append("is not there" in problems(sim)))
    at(sim, 501, lambda: disk.dirs.add(REPO))
    told(sim)
    assert seen == [True, True]


ODD = (  # none of these says that the phase is done
    "---\nstatus: in progress\nowner: me\n---\n# Status\n\nWorking.\n",
    "---\nnever closed\n# Status\n",
    "# Status\n\n```\n## DONE\n```\n\nStill at it.\n",
    "# Status\n\n~~~text\nStatus: DONE\n~~~\n",
    "# Status\n\n> ## DONE\n\nsaid the plan.\n",
    "# Status\n\n## DONE when the tests pass\n\nThey do not.\n",
    "# Status\n\n## DONE\n\n- [x] one\n- [ ] two\n",
    "# Status\n\nStatus: NOT DONE\n",
    "# Status\n\n**DONE**: no\n",
    "# Status\n\n## DONE?\n",
    "# Status\n\n## Not DONE\n",
    "Status\n======\n\nDONE\n----\n\nTODO: everything\n",
    "# Status\n\n<!-- ## DONE -->\n",
    "# Status\n\n`DONE` is what will stand here.\n",
    "# Status\n\n    ## DONE\n",
    "# Status\n\n## DONE\n\nBut the second part is missing.\n",
    "# Status\n\n## DONE\n\n## TODO\n\n- the rest\n",
    "\ufeff# Status\r\n\r\nalmost DONE\r\n",
    "# Status\n\n## DONE: nothing yet\n",
    "# Status\n\n## DONE - not really, two tests fail\n",
    "# Status\n\nThe phase is not finished.\n\n## DONE\n\nNo.\n",
    "",
)


def test_a_status_file_in_any_other_words_moves_nothing():  # I27
    sim = looping()
    for number, text in enumerate(ODD):
        put = f"{REPO}/{status_of('p1')}", text.encode()
        at(sim, 200 + 50 * number, lambda p=put: sim.machine.disk.put(*p))
        at(sim, 201 + 50 * number, lambda: sim.machine.wake(Hint.LOOP))
    at(sim, 220 + 50 * len(ODD), lambda: sim.machine.disk.unlink(f"{REPO}/{status_of('p1')}"))
    told(sim)
    assert sim.loop is not None
    assert sim.loop.moves == 0


def test_an_index_that_a_person_has_edited_holds_the_loop_until_they_say_what_they_mean():  # I27
    sim = looping()
    assert sim.loop is not None
    held, phases, loop = [], [], sim.loop
    at(sim, 200, lambda: sim.kill_watchdog(5.0))
    at(sim, 201, lambda: loop.edited(2))
    at(sim, 300, lambda: held.append("phase.json says" in problems(sim)))
    at(sim, 301, lambda: loop.edited(0))
    at(sim, 302, lambda: sim.set_phase(2, Random(1)))
    at(sim, 500, lambda: phases.extend(agent(sim, n).phase for n in (BUILDER, ADVERSARY)))
    told(sim)
    assert held == [True]
    assert phases == ["p3", "p3"]


def test_a_list_of_phases_that_changed_under_the_loop_holds_it():  # I27
    sim = looping()
    held, declared = [], sim.nemesis.declared
    text = toml(declared)
    at(sim, 150, lambda: sim.set_phase(1, Random(1)))
    other = text.replace('id = "p2"', 'id = "q2"')
    at(sim, 300, lambda: sim.nemesis._save(other))
    at(sim, 400, lambda: held.append("not in the file any more" in problems(sim)))
    at(sim, 401, lambda: sim.nemesis._save(text))
    seen = []
    at(sim, 600, lambda: seen.append(problems(sim).count("not in the file")))
    told(sim)
    assert (held, seen) == ([True], [0])
