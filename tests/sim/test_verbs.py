"""Each verb as it is, beside the real watchdog: what it says is so, and killed anywhere it leaves no mess."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.sim.agents import Mood
from tests.sim.declared import LOG_DIR, SERVICE, Declared, programs_of
from tests.sim.names import ADVERSARY, BUILDER, CLOSER
from tests.sim.scenes import agent, at, lives, story, told
from tests.sim.simulation import Simulation
from tests.sim.verbs import Sent, Verb

pytestmark = pytest.mark.sim


class Typed:
    """Command lines, each at its time, and what became of them."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.verbs: list[Verb] = []

    def at(self, t: float, line: str, *agents: str, kill: int = 0) -> None:
        """Type it then. The agents that it is about are its names, unless given."""
        words = tuple(line.split())
        about = list(agents) or [w for w in words[1:] if w in self.sim.machine.members]
        at(self.sim, t, lambda: self.verbs.append(self.sim.type_words(words, about, Random(t), kill=kill)))

    @property
    def codes(self) -> list[int | None]:
        """Their exit codes, in order; None for one that was killed."""
        return [verb.code for verb in self.verbs]


def looping() -> Simulation:
    """A builder and an adversary in the first phase, whose work takes long."""
    workers = (Declared(BUILDER, kind="loop", role=BUILDER), Declared(ADVERSARY, kind="loop", role=ADVERSARY))
    closer = Declared(CLOSER, kind="task", watch="none", enabled=False)
    return story(*workers, closer, loop=True)


def test_down_and_up_by_name():  # I25 I29
    sim = story(Declared("a"), Declared("b"))
    typed = Typed(sim)
    typed.at(200, "down a")
    seen = []
    at(sim, 900, lambda: seen.append((agent(sim, "a").alive, agent(sim, "b").alive)))
    typed.at(1000, "up a")
    at(sim, 1100, lambda: seen.append((agent(sim, "a").alive, agent(sim, "b").alive)))
    told(sim)
    assert typed.codes == [0, 0]
    assert seen == [(False, True), (True, True)]


@pytest.mark.parametrize("late", [2.0 + n * 0.07 for n in range(8)])
def test_a_wish_that_comes_while_down_works_stands_and_down_says_so(late):  # I25
    """`down` is not over yet when `up a` comes: a is wanted up, and `down` does not count it as stopped.

    Nor does it take the new run for what is left of the old one, whichever of its looks comes next.
    """
    sim = story(Declared("a"), Declared("b"))
    typed = Typed(sim)

    def stubborn() -> None:
        agent(sim, "b").proc.ignores = frozenset({15})  # keeps `down` at work for seconds

    at(sim, 100, stubborn)
    typed.at(200, "down", "a", "b")
    typed.at(200 + late, "up a --no-wait")
    seen = []
    at(sim, 240, lambda: seen.append((agent(sim, "a").alive, agent(sim, "b").alive)))
    told(sim)
    down = typed.verbs[0]
    assert seen == [(True, False)]
    assert "stopped sim-a" not in down.out.getvalue()
    assert "a: another verb wants it up since this `down` began" in down.err.getvalue()
    assert sim.machine.members["a"].wish == "up"


def test_down_ends_what_does_not_listen_and_the_children_it_left():  # I29
    sim = story(Declared("a"))
    typed = Typed(sim)

    def stubborn() -> None:
        one = agent(sim, "a")
        one.proc.ignores = frozenset({15})
        child = sim.machine.table.spawn("helper", one.proc)
        child.sid, child.ignores = child.pid, frozenset({1, 15})

    at(sim, 100, stubborn)
    typed.at(200, "down a")
    told(sim)
    assert typed.codes == [0]


def test_a_bare_down_ends_the_watchdog_as_well_and_a_bare_up_brings_all_back():  # I25
    sim = story(Declared("a"), Declared("b"))
    typed = Typed(sim)
    typed.at(200, "down", "a", "b")
    seen = []
    at(sim, 900, lambda: seen.append((sim.alive, sim.machine.living())))
    typed.at(1000, "up", "a", "b")
    at(sim, 1100, lambda: seen.append((sim.alive, len(sim.machine.living()))))
    told(sim)
    assert typed.codes == [0, 0]
    assert seen == [(False, []), (True, 2)]


def test_restart_makes_a_new_run_of_the_same_conversation_and_fresh_a_new_one():  # I18 I39
    sim = story(Declared("a", resume=True))
    typed = Typed(sim)
    talks = []
    for t in (150, 350, 550):
        at(sim, t, lambda: talks.append(agent(sim, "a").conversation))
    typed.at(200, "restart a")
    at(sim, 399, lambda: setattr(sim.machine.members["a"], "fresh", True))
    typed.at(400, "restart --fresh a")
    told(sim)
    assert typed.codes == [0, 0]
    assert talks[0] == talks[1] != talks[2]
    assert lives(sim) == 3


def test_a_start_ends_what_an_earlier_run_left_behind():  # I1 I29
    sim = story(Declared("a"))
    typed = Typed(sim)

    def escaped() -> None:
        child = sim.machine.table.spawn("helper", agent(sim, "a").proc)
        child.sid, child.ppid, child.ignores = child.pid, 1, frozenset({1})

    at(sim, 100, escaped)
    typed.at(150, "down watchdog")
    at(sim, 160, lambda: agent(sim, "a").die(signum=9))
    typed.at(170, "up a")
    told(sim)
    assert typed.codes == [0, 0]


def test_a_watchdog_whose_session_went_with_its_server_is_ended_by_its_identity():  # I25
    sim = story(Declared("a"))
    typed = Typed(sim)
    at(sim, 150, lambda: sim.nemesis.server_kill(Random(1)))
    typed.at(300, "down watchdog")
    seen = []
    at(sim, 299, lambda: seen.append(sim.alive))
    at(sim, 330, lambda: seen.append(sim.alive))
    told(sim)
    assert seen == [True, False]


def test_a_paused_agent_is_not_healed_until_it_is_unpaused():  # I25
    sim = story(Declared("a"))
    typed = Typed(sim)
    typed.at(200, "pause a")
    at(sim, 300, lambda: agent(sim, "a").die(signum=9))
    seen = []
    at(sim, 900, lambda: seen.append(agent(sim, "a").alive))
    typed.at(1000, "unpause a")
    at(sim, 1100, lambda: seen.append(agent(sim, "a").alive))
    told(sim)
    assert typed.codes == [0, 0]
    assert seen == [False, True]


def test_a_frozen_agent_stands_still_until_it_is_unpaused():  # I25
    sim = story(Declared("a"))
    typed = Typed(sim)
    typed.at(200, "pause --freeze a")
    seen = []
    at(sim, 900, lambda: seen.append(agent(sim, "a").proc.stopped))
    typed.at(1000, "unpause a")
    at(sim, 1100, lambda: seen.append(agent(sim, "a").proc.stopped))
    told(sim)
    assert typed.codes == [0, 0]
    assert seen == [True, False]


def test_a_pause_with_an_end_is_taken_back_by_the_watchdog():  # I25
    sim = story(Declared("a"))
    typed = Typed(sim)
    typed.at(200, "pause --freeze --until 5m a")
    seen = []
    at(sim, 400, lambda: seen.append(agent(sim, "a").proc.stopped))
    at(sim, 600, lambda: seen.append(agent(sim, "a").proc.stopped))
    at(sim, 600, lambda: seen.append(sim.desired.entries["a"].paused))
    told(sim)
    assert typed.codes == [0]
    assert seen == [True, False, False]


def test_send_says_0_for_what_was_heard_once_and_1_for_what_was_not():  # I11 I39
    sim = story(Declared("a"), Declared("b"))
    at(sim, 190, lambda: agent(sim, "a")._to_done())
    sent = []
    at(sim, 200, lambda: sent.append(sim.verb("send_patiently", ["a"], Random(1))))
    at(sim, 210, lambda: sim.type_words(("down", "b"), ["b"], Random(2)))
    at(sim, 300, lambda: sent.append(sim.verb("send_patiently", ["b"], Random(3))))
    told(sim)
    assert [verb.code for verb in sent] == [0, 1]
    assert agent(sim, "a").received.count("note 0 for a") == 1


def test_a_send_that_is_longer_than_one_screen_line_is_delivered():  # I11
    """tmux joins what the terminal wrapped: a composer of 11,000 characters is one line of the capture."""
    sim = story(Declared("a"))
    text = " ".join(f"word{number}" for number in range(1200))
    sim.sent.append(Sent("a", text))
    words = ("send", "a", text, "--timeout", "120")
    sent = []
    at(sim, 200, lambda: sent.append(sim.type_words(words, ["a"], Random(1))))
    told(sim)
    assert len(text) > 8000
    assert [verb.code for verb in sent] == [0], sent[0].out.getvalue()


def test_send_without_a_watchdog_is_one_for_that_long():  # I11
    sim = story(Declared("a"))
    at(sim, 190, lambda: agent(sim, "a")._to_done())
    at(sim, 195, lambda: sim.type_words(("down", "watchdog"), [], Random(2)))
    sent = []
    at(sim, 210, lambda: sent.append(sim.verb("send_patiently", ["a"], Random(1))))
    told(sim)
    assert [verb.code for verb in sent] == [0]
    assert agent(sim, "a").received.count("note 0 for a") == 1


@pytest.mark.parametrize("after", [0.1, 0.3, 0.6, 1.0])
def test_a_restart_while_a_message_is_on_its_way_is_a_restart(after):  # I39
    sim = story(Declared("a"))
    typed = Typed(sim)
    at(sim, 190, lambda: agent(sim, "a")._to_done())
    at(sim, 200, lambda: sim.verb("send", ["a"], Random(3)))
    typed.at(200 + after, "restart --no-wait a")
    told(sim)
    assert typed.codes == [0]
    assert lives(sim) == 2


def test_reset_forgives_one_that_was_given_up():  # I21
    sim = story(Declared("a"))
    typed = Typed(sim)
    sim.machine.temper.not_found = 1.0
    at(sim, 600, lambda: setattr(sim.machine.temper, "not_found", 0.0))
    typed.at(700, "reset a")
    seen = []
    at(sim, 900, lambda: seen.append(agent(sim, "a").mood))
    told(sim)
    assert typed.codes == [0]
    assert seen == [Mood.WORK]


def test_reset_forgives_a_service_that_was_given_up():  # I21
    sim = story(Declared("a"))
    typed = Typed(sim)
    sim.machine.disk.without.add(programs_of(SERVICE))
    at(sim, 600, lambda: sim.machine.disk.without.discard(programs_of(SERVICE)))
    states = []

    def look() -> None:
        view = json.loads(sim.machine.disk.text(f"{LOG_DIR}/state/view.json"))
        states.extend(row["state"] for row in view["services"])

    at(sim, 690, look)
    typed.at(700, f"reset {SERVICE}")
    at(sim, 730, look)
    told(sim)
    assert typed.codes == [0]
    assert states == ["FATAL", "RUNNING"]


def test_a_reset_that_a_hung_watchdog_has_not_heeded_says_so_and_is_done_later():  # I21 I39
    sim = story(Declared("a"))
    typed = Typed(sim)
    sim.machine.temper.not_found = 1.0
    at(sim, 600, lambda: setattr(sim.machine.temper, "not_found", 0.0))
    at(sim, 690, lambda: sim.stop_watchdog(60.0))
    typed.at(700, "reset a")
    seen = []
    at(sim, 900, lambda: seen.append(agent(sim, "a").mood))
    told(sim)
    assert typed.codes == [1]
    assert "the watchdog did not answer within 15 s" in typed.verbs[0].err.getvalue()
    assert seen == [Mood.WORK]


@pytest.mark.parametrize("watched", [True, False])
def test_phase_set_moves_the_running_agents_with_the_loop(watched):  # I27
    sim = looping()
    typed = Typed(sim)
    if not watched:
        typed.at(195, "down watchdog")
    at(sim, 200, lambda: sim.set_phase(2, Random(1)))
    seen = []

    def look() -> None:
        seen.extend((agent(sim, n).phase, agent(sim, n).alive) for n in (BUILDER, ADVERSARY))

    at(sim, 240, look)
    told(sim)
    assert seen == [("p3", True), ("p3", True)]


def test_a_phase_set_while_no_watchdog_ran_moves_the_agents_when_one_does():  # I23 I27
    sim = looping()
    typed = Typed(sim)
    at(sim, 100, lambda: agent(sim, ADVERSARY)._to_ask())
    at(sim, 300, lambda: sim.kill_watchdog(900.0))
    typed.at(310, "phase set 1", BUILDER, ADVERSARY, CLOSER, kill=40)
    phases = []
    at(sim, 1400, lambda: phases.extend(agent(sim, name).phase for name in (BUILDER, ADVERSARY)))
    told(sim)
    assert typed.codes == [None]
    assert phases == ["p2", "p2"]


def test_an_agent_that_is_down_stays_down_over_a_change_of_phase():  # I25
    sim = looping()
    typed = Typed(sim)
    typed.at(200, "down builder")
    at(sim, 300, lambda: sim.set_phase(1, Random(1)))
    seen = []
    at(sim, 600, lambda: seen.append((agent(sim, BUILDER).alive, agent(sim, ADVERSARY).phase)))
    told(sim)
    assert seen == [(False, "p2")]


LINES = ("up a", "down a", "restart a", "pause --freeze a", "unpause a", "reset a", "down", "up")


def _killed(line: str, call: int, hung: bool) -> str:
    sim = story(Declared("a"), Declared("b"), hours=0.5)
    if line == "up a":
        Typed(sim).at(100, "down a")
    if line == "unpause a":
        Typed(sim).at(100, "pause --freeze a")
    if hung:
        at(sim, 199, lambda: sim.stop_watchdog(60.0))
    everyone = ("a", "b") if line in {"up", "down"} else ()
    Typed(sim).at(200, line, *everyone, kill=call)
    at(sim, 260, lambda: agent(sim, "b").die(signum=9))
    return sim.run().failure


@pytest.mark.long
@pytest.mark.parametrize("line", LINES)
def test_a_verb_killed_at_any_port_call_leaves_nothing_that_is_not_mended(line):
    for call in range(1, 140, 2):
        failure = _killed(line, call, hung=call % 4 == 1)
        assert failure == "", f"{line} killed at port call {call}: {failure}"


@pytest.mark.parametrize("line", LINES)
def test_a_verb_killed_at_some_port_calls_leaves_nothing_that_is_not_mended(line):
    for call in (2, 9, 17, 30, 52):
        failure = _killed(line, call, hung=call == 17)
        assert failure == "", f"{line} killed at port call {call}: {failure}"
