"""What the simulation once broke, each as a story of its own: it must not happen again."""

from __future__ import annotations

import errno
from random import Random

import pytest

from fleet.ports import Hint
from tests.sim.agents import Mood, SimAgent
from tests.sim.declared import LOG_DIR, Declared
from tests.sim.names import ADVERSARY, BUILDER, CLOSER
from tests.sim.scenes import agent, at, lives, story, told
from tests.sim.simulation import Simulation
from tests.sim.sources import transcript_of

pytestmark = pytest.mark.sim


def test_a_renamed_session_is_neither_stopped_nor_started_twice():  # I1 I16
    sim = story(Declared("a"))
    at(sim, 100, lambda: sim.machine.tmux.rename(agent(sim, "a").session, "mine"))
    told(sim)
    assert lives(sim) == 1
    assert agent(sim, "a").mood is Mood.WORK


@pytest.mark.parametrize("backend", ["clod", "opal", "plain"])
def test_a_restarted_watchdog_does_not_take_long_work_for_a_stall(backend):  # I16 T77
    sim = story(Declared("a", backend))
    at(sim, 1500, lambda: sim.kill_watchdog(1.0))
    told(sim)
    assert lives(sim) == 1


@pytest.mark.parametrize("load", [0.0, 0.9])
def test_a_silent_tool_of_the_second_hour_is_left_to_work(load):  # I16
    sim = story(Declared("a"), hours=4.0)

    def build() -> None:
        one = agent(sim, "a")
        one.enter(Mood.SILENT, "@ waiting for the build")
        sim.machine.table.set_load(sim.machine.table.spawn("cc1", one.proc), load)
        one._then(1800, lambda: one.begin("the build is over"))

    at(sim, 5400, build)
    told(sim)
    assert lives(sim) == 1


@pytest.mark.parametrize("lasted", [1290.0, 1495.0, 1700.0])
def test_a_tool_that_ended_between_two_looks_was_work_until_then(lasted):  # I16, I23
    sim = story(Declared("a"), hours=2.0)

    def build() -> None:
        one = agent(sim, "a")
        one.enter(Mood.SILENT, "@ waiting for the build")
        child = sim.machine.table.spawn("cc1", one.proc)
        sim.machine.table.set_load(child, 0.9)
        child.on_exit = lambda _code, _signum: one._then(150.0, one._turn_ended)
        one._then(lasted, lambda: sim.machine.table.end(child, code=0))

    at(sim, 1500, build)
    told(sim)


def test_a_wall_clock_set_while_nobody_watched_makes_nobody_older():  # I23
    sim = story(Declared("a"))
    at(sim, 1000, lambda: agent(sim, "a")._to_done())
    at(sim, 1040, lambda: sim.kill_watchdog(30.0))
    at(sim, 1050, lambda: sim.nemesis._jump(7200.0))
    told(sim)
    assert sim.oracles.acts["remove"] == 1, "it is rebooted once, after its five minutes"


@pytest.mark.parametrize("seconds", [600.0, 30_000.0])
def test_a_suspend_makes_nobody_older(seconds):  # I23
    sim = story(Declared("a"))
    at(sim, 1000, lambda: agent(sim, "a")._to_done())
    at(sim, 1040, lambda: sim.nemesis._jump(seconds))
    told(sim)


def test_a_clock_set_back_does_not_make_every_look_a_capture():
    sim = story(Declared("a", watch="heal"), Declared("b"))
    looked = []

    def watch() -> None:
        one = agent(sim, "a")
        shown = one.screen
        one.screen = lambda: looked.append(1) or shown()

    at(sim, 1000, lambda: agent(sim, "a")._to_done())
    at(sim, 1100, lambda: sim.nemesis._jump(-7200.0))
    at(sim, 1110, lambda: sim.kill_watchdog(1.0))  # the next one looks at everything
    at(sim, 1400, watch)
    told(sim)
    assert not looked, "nothing moved on it since long before the clock did"


def test_an_agent_is_not_older_for_what_a_stopped_watchdog_missed():  # I23
    sim = story(Declared("a"))
    at(sim, 1000, lambda: agent(sim, "a")._to_done())
    at(sim, 1010, lambda: sim.stop_watchdog(2.0))
    at(sim, 1060, lambda: sim.stop_watchdog(1200.0))

    def busy_meanwhile() -> None:  # and in the end the screen is as it was
        one = agent(sim, "a")
        one.enter(Mood.WORK)
        sim.machine.table.set_load(one.proc, 0.0)
        one._then(900, lambda: one.enter(Mood.DONE))

    at(sim, 1100, busy_meanwhile)
    told(sim)


def test_a_wake_is_known_on_the_screen_and_submitted():  # I11
    sim = story(Declared("a", wake=600.0))
    told(sim)
    assert "Have a look whether anything is left to do." in agent(sim, "a").received


def test_words_stranded_by_a_limit_do_not_block_what_comes_after_it():  # I5 I12
    sim = story(Declared("a", wake=600.0), hours=2.0)

    def caught() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 900
        one.composer = "Have a look whether anything is left to do."
        one.limit()

    at(sim, 1000, caught)
    told(sim)
    assert agent(sim, "a").mood is Mood.WORK


def test_a_reset_ends_a_window_and_the_old_banner_does_not_arm_it_for_tomorrow():  # I48
    sim = story(Declared("a"), hours=3.0)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 600
        one.rng = Random(3)
        one.limit()

    at(sim, 500, limited)
    at(sim, 2000, lambda: sim.verb("reset", ["a"], Random(1)))
    told(sim)
    assert agent(sim, "a").mood is Mood.WORK


def test_the_limit_of_an_agent_that_nobody_watches_is_its_accounts_all_the_same():  # I5
    sim = story(Declared("a", watch="none", account="team"), Declared("b", account="team", wake=600.0))

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 1800
        one.limit()

    at(sim, 300, limited)
    at(sim, 310, lambda: agent(sim, "b")._to_done())
    at(sim, 900, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    told(sim)
    assert agent(sim, "b").mood is Mood.WORK
    assert agent(sim, "a").received, "after the window a person is heard again"


class Picks(Random):
    """Takes the same place of every list: the spelling of a banner."""

    def __init__(self, place: int) -> None:
        super().__init__(1)
        self.place = place

    def choice(self, seq):
        return seq[self.place]


def limited_together(sim, seconds: float) -> None:
    """Both of one account: a's banner names no time, b's does."""
    account = agent(sim, "a").account
    account.printed = account.until = sim.machine.clock.wall() // 60 * 60 + seconds
    for name, place in (("a", -1), ("b", -2)):
        agent(sim, name).rng = Picks(place)
        agent(sim, name).limit()


def test_a_banner_without_a_time_does_not_open_the_window_that_another_one_names():  # I5
    sim = story(Declared("a", account="team"), Declared("b", account="team"), hours=1.5)
    at(sim, 300, lambda: limited_together(sim, 1800))
    at(sim, 400, lambda: agent(sim, "a").die(signum=9))
    told(sim)
    assert agent(sim, "a").mood is agent(sim, "b").mood is Mood.WORK
    assert lives(sim) == 3


def test_a_run_begun_after_a_window_was_ended_by_hand_may_arm_the_next_one():  # I5
    sim = story(Declared("a", account="team"), Declared("b", account="team"), hours=1.5)
    at(sim, 300, lambda: limited_together(sim, 2400))
    at(sim, 500, lambda: sim.verb("restart", ["b"], Random(1)))
    told(sim)
    assert agent(sim, "a").mood is agent(sim, "b").mood is Mood.WORK


def test_who_is_refused_for_good_inside_its_accounts_window_is_not_started_after_it():  # I21
    sim = story(Declared("a", account="team"), Declared("b", account="team"))

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 900
        one.limit()

    at(sim, 300, limited)
    at(sim, 400, lambda: agent(sim, "b")._to_auth())
    at(sim, 700, lambda: agent(sim, "b").die(signum=9))
    moods = []
    at(sim, 2000, lambda: moods.append((agent(sim, "a").mood, lives(sim))))  # peace forgives it later
    told(sim)
    assert moods == [(Mood.WORK, 2)]


def test_a_limit_that_a_person_met_before_our_probe_did_is_believed():  # I5 I12
    sim = story(Declared("a", account="team"), Declared("b", account="team", wake=600.0), hours=3.0)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = sim.machine.clock.wall() // 60 * 60 + 600
        one.account.until = one.account.printed + 3000  # it will not be lifted when the banner says
        one.rng = Picks(-2)
        one.limit()
        one.human_types("please also look at")

    at(sim, 300, limited)
    at(sim, 1500, lambda: agent(sim, "a").submit())
    told(sim)
    assert agent(sim, "a").mood is Mood.WORK


def test_probes_of_a_second_window_are_refused_as_those_of_the_first_were():  # I5
    """Where there is no composer, the screen below a refused probe is the same in both windows."""
    sim = story(Declared("a", "plain"), hours=2.5)
    sim.machine.temper.clears = 0.0

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() + 1800
        one.enter(Mood.LIMIT, "! You have hit your usage limit.")
        one.refused = sim.machine.clock.t

    at(sim, 300, limited)
    at(sim, 2700, limited)
    told(sim)
    assert lives(sim) == 1
    assert sum("The pause is over" in text for text in agent(sim, "a").received) >= 8


def test_who_was_taken_down_inside_its_window_and_starts_without_a_banner_is_held_by_no_new_limit():  # I6
    sim = story(Declared("a", "plain", watch="none"))

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 2400
        one.rng = Picks(-2)
        one.limit()

    def up() -> None:
        sim.machine.members["a"].account.until = 0.0  # the provider takes it back early
        sim.type_words(("up", "--no-wait"), ["a"], Random(1))

    at(sim, 300, limited)
    at(sim, 600, lambda: sim.verb("down_all", ["a"], Random(1)))
    at(sim, 1200, up)
    told(sim)
    assert lives(sim) == 2


def test_a_date_that_a_clock_which_is_behind_puts_a_year_ahead_is_held_for_and_not_probed_on():  # I5 I48
    sim = story(Declared("a"), hours=2.0)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 3600
        one.rng = Picks(1)
        one.limit()
        one.rng = Picks(0)  # refused again, it names the date

    at(sim, 300, limited)
    at(sim, 900, lambda: sim.nemesis._set(-3e7))
    told(sim)
    one = agent(sim, "a")
    assert sum("The pause is over" in text for text in one.received) == 1
    assert one.banner - sim.machine.clock.wall() > 300 * 86_400


def test_a_time_of_day_that_passed_while_nobody_looked_is_not_tomorrows():  # I48
    sim = story(Declared("a"), hours=3.0)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 600
        one.rng = Picks(1)
        one.limit()

    at(sim, 500, lambda: sim.stop_watchdog(3000.0))
    at(sim, 700, limited)
    moods = []
    at(sim, 4200, lambda: moods.append(agent(sim, "a").mood))
    told(sim)
    assert moods == [Mood.WORK]


def test_what_a_probe_has_found_out_is_believed_though_a_mate_is_limited():  # I5
    sim = story(Declared("a", account="team"), Declared("b", account="team"), hours=1.5)
    at(sim, 300, lambda: limited_together(sim, 3000))
    at(sim, 500, lambda: sim.verb("reset", ["a", "b"], Random(1)))
    told(sim)
    assert agent(sim, "a").mood is agent(sim, "b").mood is Mood.WORK


def test_a_limit_that_came_while_nothing_could_be_recorded_is_not_probed():  # I5 I35
    sim = story(Declared("a", account="team"), Declared("b", account="team", wake=600.0), hours=3.0)

    def limited(seconds: float) -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + seconds
        one.rng = Picks(-2)
        one.limit()

    at(sim, 300, lambda: limited(600))
    at(sim, 800, lambda: setattr(sim.machine.disk, "fault", errno.ENOSPC))
    at(sim, 1000, lambda: agent(sim, "a").begin("it goes on by itself"))
    at(sim, 1200, lambda: limited(4000))
    at(sim, 1800, lambda: setattr(sim.machine.disk, "fault", 0))
    told(sim)
    assert agent(sim, "a").mood is Mood.WORK


def test_what_a_person_says_at_the_end_of_a_window_does_not_wait_behind_a_wake():  # I48
    sim = story(Declared("a", "opal", wake=1800.0), hours=2.0)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 600
        one.rng = Picks(0)
        one.limit()

    at(sim, 1900, limited)  # the wake of the thirtieth minute still waits: it was at work
    at(sim, 2100, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    moods = []
    at(sim, 2700, lambda: moods.append(agent(sim, "a").mood))
    told(sim)
    assert moods == [Mood.WORK]


@pytest.mark.parametrize("reset", [False, True])
def test_what_a_person_says_at_the_end_of_a_window_is_its_probe(reset):  # I5
    sim = story(Declared("a"), hours=2.0)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 1800
        one.rng = Picks(-1)  # it names no time: tried every five minutes, and not in between
        one.limit()
        one.paste = pasted

    def pasted(text: str) -> None:
        SimAgent.paste(agent(sim, "a"), text)
        if reset and text.startswith("note"):  # it says nothing of the words in the composer
            sim.verb("reset", ["a"], Random(1))

    at(sim, 300, limited)
    at(sim, 450, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 640, lambda: agent(sim, "a").human_types("please also look at"))  # a probe would wait for that
    at(sim, 740, lambda: setattr(agent(sim, "a"), "rng", Random(1)))  # it thinks better of it
    at(sim, 740, lambda: agent(sim, "a").human_finishes())
    told(sim)
    assert agent(sim, "a").mood is Mood.WORK
    assert len([t for t in agent(sim, "a").received if t.startswith("note")]) == 1


def test_a_paste_that_a_hung_server_carries_out_late_is_not_typed_again():  # I11 I39
    sim = story(Declared("a"))
    at(sim, 200, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 200, lambda: sim.machine.arm(12, sim.machine.tmux.hang))
    at(sim, 260, sim.machine.tmux.unhang)
    told(sim)
    assert [t for t in agent(sim, "a").received if t.startswith("note")] in ([], ["note 0 for a"])


@pytest.mark.parametrize("call", range(1, 40, 3))
def test_a_person_who_begins_to_write_at_any_moment_is_not_spoken_for(call):  # I12
    sim = story(Declared("a", watch="heal"))
    at(sim, 100, lambda: agent(sim, "a")._to_done())
    at(sim, 200, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 200, lambda: sim.machine.arm(call, lambda: agent(sim, "a").human_types("please also look at")))
    told(sim)


@pytest.mark.parametrize("absent", [Simulation.kill_watchdog, Simulation.stop_watchdog])
def test_children_of_a_run_that_only_a_verb_knew_are_gone_before_the_next_one(absent):  # I1 I29 I33
    sim = story(Declared("a"))
    sim.machine.temper.daemons = 1.0
    at(sim, 100, lambda: absent(sim, 200.0))
    at(sim, 120, lambda: sim.verb("restart", ["a"], Random(3)))
    at(sim, 200, lambda: sim.nemesis.server_kill(Random(1)))
    told(sim)
    assert lives(sim) == 3


def test_a_message_for_the_dead_does_not_make_the_watchdog_spin():  # I50
    sim = story(Declared("a", watch="none"), Declared("b"))
    at(sim, 100, lambda: agent(sim, "a").die(code=1))
    at(sim, 200, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    report = sim.run()
    assert report.ticks < 1000


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_for_minutes_ends_no_tick_and_loses_no_agent(code):  # I35
    sim = story(Declared("a"), Declared("b"))
    at(sim, 299, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 300, lambda: setattr(sim.machine.disk, "fault", code))
    at(sim, 400, lambda: agent(sim, "b").die(signum=9))
    at(sim, 900, lambda: setattr(sim.machine.disk, "fault", 0))
    told(sim)
    assert lives(sim) == 3


def test_a_stop_that_a_full_disk_forbade_does_not_go_on_when_there_is_space_again():  # I16 I35
    sim = story(Declared("a"))
    at(sim, 300, lambda: agent(sim, "a")._to_done())
    at(sim, 500, lambda: setattr(sim.machine.disk, "fault", errno.ENOSPC))
    at(sim, 700, lambda: agent(sim, "a").begin("more work"))
    at(sim, 900, lambda: setattr(sim.machine.disk, "fault", 0))
    told(sim)
    assert lives(sim) == 1


def test_a_watchdog_stopped_in_the_middle_of_a_tick_measures_nobody_wrong():  # I16 I23
    for call in range(1, 30, 2):
        sim = story(Declared("a", "plain"), hours=0.6)
        at(sim, 800, lambda s=sim, c=call: s.machine.arm(c, lambda: s.stop_watchdog(600.0)))
        told(sim)
        assert lives(sim) == 1


def test_who_went_quiet_while_we_were_stopped_in_a_look_is_not_older_for_it():  # I23
    for call in range(1, 12):
        sim = story(Declared("a"), hours=0.6)
        at(sim, 840, lambda s=sim, c=call: s.machine.arm(c, lambda: s.stop_watchdog(60.0)))
        at(sim, 885, lambda s=sim: agent(s, "a")._to_done())
        told(sim)
        assert lives(sim) == 2, "it is rebooted once, after its five minutes"


def test_what_was_decided_before_a_long_stop_of_ours_is_not_done_after_it():  # I16 I23 I25
    for call in range(1, 25, 2):
        sim = story(Declared("a"), Declared("b"), hours=0.6)
        at(sim, 300, lambda s=sim: s.verb("down", ["a"], Random(1)))
        at(sim, 400, lambda s=sim, c=call: s.machine.arm(c, lambda: s.stop_watchdog(600.0)))
        at(sim, 700, lambda s=sim: s.verb("up", ["a"], Random(1)))
        told(sim)
        assert lives(sim) == 3


def test_a_reset_after_mending_brings_back_what_could_never_start():  # I21 I47
    sim = story(Declared("a"))
    sim.machine.temper.not_found = 1.0
    at(sim, 600, lambda: setattr(sim.machine.temper, "not_found", 0.0))
    at(sim, 700, lambda: sim.verb("reset", ["a"], Random(1)))
    moods = []
    at(sim, 800, lambda: moods.append(agent(sim, "a").mood))
    told(sim)
    assert moods == [Mood.WORK]
    assert lives(sim) == 2


@pytest.mark.parametrize("ended", [False, True], ids=["in-a-turn", "after-a-turn"])
@pytest.mark.parametrize("backend", ["clod", "hook", "scribe", "codec", "envoy"])
def test_an_unreadable_screen_is_never_healed(backend, ended):  # I7: nor typed into, whatever its CLI reports
    sim = story(Declared("a", backend, wake=3600.0), hours=3.0)

    def strange() -> None:
        if ended:
            agent(sim, "a").enter(Mood.IDLE, "@ finished")
        agent(sim, "a").enter(Mood.STRANGE)

    at(sim, 100, strange)
    told(sim)
    assert lives(sim) == 1


def test_a_conversation_on_record_is_resumed():  # I18
    sim = story(Declared("a", resume=True))
    at(sim, 200, lambda: agent(sim, "a").die(signum=9))
    at(sim, 900, lambda: agent(sim, "a").die(signum=9))
    told(sim)
    assert lives(sim) == 3
    assert agent(sim, "a").resumed


def test_an_end_that_a_full_disk_kept_off_the_record_is_no_second_proof_against_a_conversation():  # I18 I35
    sim = story(Declared("a", resume=True))
    at(sim, 199, lambda: setattr(sim.machine.temper, "boot_death", 1.0))
    at(sim, 200, lambda: agent(sim, "a").die(signum=9))
    at(sim, 200.1, lambda: setattr(sim.machine.disk, "fault", errno.ENOSPC))
    at(sim, 240, lambda: setattr(sim.machine.disk, "fault", 0))
    at(sim, 240, lambda: setattr(sim.machine.temper, "boot_death", 0.0))
    told(sim)
    assert lives(sim) == 3
    assert agent(sim, "a").resumed


def test_a_life_that_nobody_watched_is_no_proof_against_its_conversation():  # I18
    sim = story(Declared("a", resume=True))
    at(sim, 100, lambda: sim.stop_watchdog(1200.0))
    at(sim, 200, lambda: sim.verb("restart", ["a"], Random(1)))
    at(sim, 1299, lambda: setattr(sim.machine.temper, "boot_death", 1.0))
    at(sim, 1299, lambda: agent(sim, "a").die(signum=9))

    def only_the_next_one() -> None:
        if lives(sim) == 3 and not agent(sim, "a").alive:
            sim.machine.temper.boot_death = 0.0
        else:
            sim.machine.clock.after(0.1, only_the_next_one)

    at(sim, 1299, only_the_next_one)
    told(sim)
    assert lives(sim) == 4
    assert agent(sim, "a").resumed


def test_children_of_a_frozen_agent_that_died_are_let_go_with_it():  # I25 I29
    sim = story(Declared("a", watch="none"))

    def child() -> None:
        one = agent(sim, "a")
        helper = sim.machine.table.spawn("helper", one.proc)
        helper.sid, helper.handler = helper.pid, lambda _signum: True

    at(sim, 100, child)
    at(sim, 200, lambda: sim.verb("freeze", ["a"], Random(1)))
    at(sim, 300, lambda: agent(sim, "a").die(signum=9))
    at(sim, 400, lambda: sim.verb("thaw", ["a"], Random(1)))
    told(sim)


def test_children_of_a_frozen_agent_that_died_are_let_go_when_it_cannot_be_frozen_again():  # I25 I29
    sim = story(Declared("a", watch="none"))
    helpers = []

    def child() -> None:
        one = agent(sim, "a")
        helpers.append(sim.machine.table.spawn("helper", one.proc))
        helpers[0].sid, helpers[0].handler = helpers[0].pid, lambda _signum: True

    at(sim, 100, child)
    at(sim, 200, lambda: sim.verb("freeze", ["a"], Random(1)))
    at(sim, 300, lambda: agent(sim, "a").die(signum=9))
    at(sim, 400, lambda: sim.verb("freeze", ["a"], Random(1)))
    at(sim, 500, lambda: sim.verb("thaw", ["a"], Random(1)))
    seen = []
    at(sim, 510, lambda: seen.extend(helper.stopped for helper in helpers))
    told(sim)
    assert seen == [False]


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC])
def test_a_freeze_whose_end_no_disk_would_take_is_no_stall(code):  # I16 I25 I35
    sim = story(Declared("a"))
    rows = []
    at(sim, 100, lambda: sim.type_words(("pause", "--freeze", "--until", "5m", "a"), ["a"], Random(1)))
    at(sim, 300, lambda: setattr(sim.machine.disk, "fault", code))
    at(sim, 300, lambda: setattr(sim.machine.disk, "room", 0))
    at(sim, 500, lambda: rows.append((sim.watchdog.board.rows["a"].detail, sim.watchdog.count)))
    at(sim, 1500, lambda: rows.append((sim.watchdog.board.rows["a"].detail, sim.watchdog.count)))
    at(sim, 1500, lambda: setattr(sim.machine.disk, "fault", 0))
    at(sim, 1510, lambda: rows.append((sim.watchdog.board.rows["a"].detail, sim.watchdog.count)))
    told(sim)
    assert lives(sim) == 1
    assert [detail for detail, _ in rows] == ["FROZEN", "FROZEN", "WORKING"]
    assert rows[1][1] - rows[0][1] < 1500, "it is tried about once a second"


def test_a_transcript_is_heard_and_one_that_cannot_be_read_costs_only_itself():  # I16 I35
    sim = story(Declared("a", "scribe"))
    path, heard = [], []

    def break_it() -> None:
        path.append(transcript_of(agent(sim, "a")))
        heard.append(sim.watchdog.ears._ears["sim-a"].offsets.get(path[0], 0))
        sim.machine.disk.unlink(path[0])
        sim.machine.disk.dirs.add(path[0])

    at(sim, 200, break_it)
    at(sim, 800, lambda: sim.machine.disk.dirs.discard(path[0]))
    at(sim, 900, lambda: agent(sim, "a")._to_done())
    at(sim, 1000, lambda: heard.append(sim.watchdog.ears._ears["sim-a"].heard))
    told(sim)
    assert heard[0] > 0
    assert (heard[1].working, heard[1].source) == (False, "transcript")
    assert "signal.unreadable" in sim.machine.disk.text(f"{LOG_DIR}/events.jsonl")


@pytest.mark.parametrize("seconds", [7200.0, 3e7])
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("backend", ["scribe", "hook"])
def test_what_a_cli_reports_after_the_clock_was_set_back_is_heard(backend, crashes, seconds):  # I16 I23
    sim = story(Declared("a", backend))
    at(sim, 100, lambda: agent(sim, "a")._to_done())  # the model itself has ended a turn
    at(sim, 200, lambda: sim.nemesis._set(-seconds))
    at(sim, 250, lambda: agent(sim, "a").begin("more work"))
    if crashes:
        at(sim, 260, lambda: sim.kill_watchdog(1.0))
    at(sim, 400, lambda: agent(sim, "a")._to_auth())
    details = []
    at(sim, 1500, lambda: details.append(sim.watchdog.board.rows["a"].detail))
    at(sim, 2000, lambda: agent(sim, "a").begin("logged in"))
    told(sim)
    assert details == ["FATAL"]
    assert lives(sim) == 1


@pytest.mark.parametrize("backend", ["hook", "scribe", "codec"])
def test_a_pipe_where_a_report_should_be_costs_only_itself(backend):  # I35 I50
    sim = story(Declared("a", backend))

    def pipe() -> None:
        one = agent(sim, "a")
        spool = f"{LOG_DIR}/state/signals/sim-a/hook-1.json"
        sim.machine.disk.put_pipe(spool if backend == "hook" else transcript_of(one))
        sim.machine.wake(Hint.SIGNALS)

    at(sim, 200, pipe)
    at(sim, 300, lambda: agent(sim, "a")._to_done())
    told(sim)
    assert "signal.unreadable" in sim.machine.disk.text(f"{LOG_DIR}/events.jsonl")


def test_a_hook_is_heard_at_once_though_nothing_moves_on_the_screen():
    sim = story(Declared("a", "hook", watch="heal"))
    heard = []
    at(sim, 100, lambda: agent(sim, "a")._to_done())
    at(sim, 200, lambda: sim.machine.sources.report(agent(sim, "a"), "PermissionRequest", "Bash"))
    at(sim, 201, lambda: heard.append(sim.watchdog.ears._ears["sim-a"].heard.asked))
    at(sim, 210, lambda: sim.machine.sources.report(agent(sim, "a"), "Stop", ""))
    told(sim)
    assert heard == ["a question"]


@pytest.mark.parametrize(("backend", "source"), [("codec", "transcript"), ("envoy", "server")])
def test_an_id_that_a_cli_chose_itself_is_learned_and_resumed(backend, source):  # I18
    sim = story(Declared("a", backend, resume=True))
    heard = []
    at(sim, 200, lambda: heard.append(sim.watchdog.ears._ears["sim-a"].heard))
    at(sim, 300, lambda: agent(sim, "a").die(signum=9))
    told(sim)
    assert (heard[0].working, heard[0].source) == (True, source)
    assert lives(sim) == 2
    assert agent(sim, "a").resumed
    assert agent(sim, "a").conversation == heard[0].conversation


def test_what_a_server_answers_is_heard_when_it_comes():
    sim = story(Declared("a", "envoy", watch="heal"))
    heard = []
    at(sim, 200, lambda: heard.append(sim.watchdog.ears._ears["sim-a"].heard.working))
    at(sim, 300, lambda: agent(sim, "a")._to_done())
    at(sim, 390, lambda: heard.append(sim.watchdog.ears._ears["sim-a"].heard.working))
    told(sim)
    assert heard == [True, False]


def test_a_strangers_server_is_no_problem_any_more_when_its_run_is_over():
    sim = story(Declared("a", "envoy"))
    told_of = []
    at(sim, 200, lambda: setattr(sim.machine.sources, "trouble", "stranger"))
    at(sim, 280, lambda: agent(sim, "a")._to_done())
    at(sim, 320, lambda: told_of.append(len(sim.watchdog._strangers())))
    at(sim, 330, lambda: agent(sim, "a").die(signum=9))
    at(sim, 331, lambda: setattr(sim.machine.sources, "trouble", ""))
    at(sim, 900, lambda: told_of.append(len(sim.watchdog._strangers())))
    told(sim)
    assert told_of == [1, 0]


@pytest.mark.parametrize("trouble", ["", "stalls", "faults", "stranger"])
def test_a_message_goes_by_the_server_or_is_typed_and_arrives_once(trouble):  # I11 I39 I50
    sim = story(Declared("a", "envoy"))
    at(sim, 200, lambda: agent(sim, "a")._to_done())
    at(sim, 250, lambda: setattr(sim.machine.sources, "trouble", trouble))
    at(sim, 260, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 600, lambda: setattr(sim.machine.sources, "trouble", ""))
    heard = []
    at(sim, 900, lambda: heard.extend(t for t in agent(sim, "a").received if t.startswith("note")))
    told(sim)
    assert heard == ["note 0 for a"]
    assert sim.oracles.acts["post"] == (0 if trouble else 1)


@pytest.mark.parametrize(("backend", "place"), [("codec", -1), ("hook", 1), ("scribe", 1), ("envoy", 1)])
def test_a_limit_that_a_cli_reports_is_believed_until_the_end_that_it_names(backend, place):  # I5 I48
    """The banner of codec names no end; its rollout does."""
    sim = story(Declared("a", backend), hours=2.0)
    heard: list[int] = []

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 1800
        one.rng = Picks(place)
        one.limit()

    at(sim, 300, limited)
    at(sim, 1700, lambda: heard.append(len(agent(sim, "a").received)))
    told(sim)
    one = agent(sim, "a")
    assert heard == [len(one.received) - 1], "one probe, and none before the end"
    assert one.mood is Mood.WORK
    assert lives(sim) == 1


@pytest.mark.parametrize("late", [0.5, 5.0])
@pytest.mark.parametrize("backend", ["hook", "scribe", "codec"])
def test_a_limit_that_is_reported_before_the_screen_shows_it_is_one_limit(backend, late):  # I5 I48
    """For `late` seconds its screen shows the turn that the limit has ended, with its spinner."""
    sim = story(Declared("a", backend), hours=2.0)
    clock, armed = sim.machine.clock, f"{LOG_DIR}/state/limited-sim-a.json"

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = clock.wall() // 60 * 60 + 1800
        one.rng = Picks(1)
        drawn, busy, left = one.screen, one.screen(), [late]

        def spin() -> None:
            left[0] -= 0.1 if armed in sim.machine.disk.files else 0.0
            one.screen = (lambda: busy) if left[0] > 0 else drawn
            one.say()
            sim.machine.wake(Hint.SIGNALS)
            if left[0] > 0:
                clock.after(0.1, spin)

        spin()
        one.limit()

    at(sim, 300, limited)
    told(sim)
    assert agent(sim, "a").mood is Mood.WORK
    events = sim.report.events
    assert (events["agent.limited"], events["agent.probed"], events["agent.resumed"]) == (1, 1, 1)


def test_work_that_only_a_screen_shows_ends_a_window_that_was_reported_just_before():  # I5
    sim = story(Declared("a", "hook"))

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = sim.machine.clock.wall() // 60 * 60 + 1800
        one.rng = Picks(1)
        one.limit()

    def works_on() -> None:
        sim.machine.sources.lost = True  # the report of its next turn
        agent(sim, "a").begin("a person went on at once")
        sim.machine.wake(Hint.SIGNALS)

    def count() -> None:
        resumed.append(sim.machine.disk.text(f"{LOG_DIR}/events.jsonl").count("agent.resumed"))

    resumed: list[int] = []
    at(sim, 300, limited)
    at(sim, 302, works_on)
    at(sim, 307, count)
    at(sim, 311, count)
    told(sim)
    assert resumed == [0, 1]


def test_the_menu_of_a_limit_is_closed_with_its_one_key_when_the_window_is_over():  # I5 I14 I48
    sim = story(Declared("a", "hook"), hours=2.0)
    seen: list[bool] = []

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 1800
        one.rng = Picks(1)
        one.limit()
        one.menu = True

    at(sim, 300, limited)
    at(sim, 1700, lambda: seen.append(agent(sim, "a").menu))
    told(sim)
    one = agent(sim, "a")
    assert seen == [True]
    assert one.mood is Mood.WORK
    assert sum("The pause is over" in text for text in one.received) == 1


def test_a_question_that_is_open_when_the_window_ends_is_left_to_a_person():  # I5 I14
    sim = story(Declared("a"), hours=2.0)
    moods: list[Mood] = []

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 1800
        one.rng = Picks(1)
        one.limit()

    at(sim, 300, limited)
    at(sim, 600, lambda: agent(sim, "a").enter(Mood.ASK))  # somebody tried something there
    at(sim, 4000, lambda: moods.append(agent(sim, "a").mood))  # it is answered when peace comes
    told(sim)
    assert moods == [Mood.ASK]
    assert agent(sim, "a").mood is Mood.WORK
    assert lives(sim) == 1


def test_the_probe_at_the_end_of_a_window_goes_by_the_server():  # I48
    sim = story(Declared("a", "envoy"), hours=1.5)

    def limited() -> None:
        one = agent(sim, "a")
        one.account.printed = one.account.until = sim.machine.clock.wall() // 60 * 60 + 900
        one.rng = Picks(-2)
        one.limit()

    at(sim, 300, limited)
    moods = []
    at(sim, 1500, lambda: moods.append(agent(sim, "a").mood))
    told(sim)
    assert moods == [Mood.WORK]
    assert sim.oracles.acts["post"] == 1


@pytest.mark.parametrize("call", range(1, 60, 4))
def test_a_letter_of_a_watchdog_that_was_killed_is_looked_up_before_it_is_sent_again(call):  # I11 I39
    sim = story(Declared("a", "envoy", watch="heal"))
    at(sim, 200, lambda: agent(sim, "a")._to_done())
    at(sim, 260, lambda: sim.verb("send_patiently", ["a"], Random(1)))
    at(sim, 260, lambda: sim.machine.arm(call, lambda: sim.kill_watchdog(1.0)))
    told(sim)
    assert [t for t in agent(sim, "a").received if t.startswith("note")] == ["note 0 for a"]


def test_a_message_in_an_inbox_is_told_to_its_side_once():  # I11
    workers = (Declared(BUILDER, kind="loop", role=BUILDER), Declared(ADVERSARY, kind="loop", role=ADVERSARY))
    sim = story(*workers, Declared(CLOSER, kind="task", watch="none", enabled=False), loop=True)
    for t, number in ((300, 2), (900, 3), (1500, 5)):
        at(sim, t, lambda n=number: sim.nemesis.inbox_message(Random(n)))
    at(sim, 1000, lambda: sim.kill_watchdog(1.0))
    told(sim)
    heard = [t for n in (BUILDER, ADVERSARY) for t in agent(sim, n).received if "new message" in t]
    assert len(heard) == 3


def test_a_full_disk_that_has_room_again_is_no_trouble_any_more():  # I35
    sim = story(Declared("a"))
    troubles = []
    at(sim, 300, lambda: agent(sim, "a")._to_done())
    at(sim, 500, lambda: setattr(sim.machine.disk, "fault", errno.ENOSPC))
    at(sim, 700, lambda: agent(sim, "a").begin("more work"))
    at(sim, 900, lambda: setattr(sim.machine.disk, "fault", 0))
    at(sim, 1000, lambda: troubles.append(sim.watchdog.trouble.now))
    told(sim)
    assert troubles == [""]


def test_a_crash_loop_is_slowed_down_and_forgiven_by_a_reset():  # I21
    sim = story(Declared("a"), Declared("b"), hours=3.0)
    sim.machine.temper.boot_death = 1.0
    told(sim)
    assert 10 < lives(sim) < 60


@pytest.mark.parametrize("after", [0.6, 1.0, 3.0, 10.0])
def test_a_watchdog_that_is_killed_after_its_heals_has_them_on_record(after):  # I21
    names = [f"a{number}" for number in range(14)]
    sim = story(*(Declared(name, watch="heal") for name in names))
    for name in names:
        at(sim, 1000, lambda n=name: agent(sim, n).die(code=1))
    at(sim, 1000 + after, lambda: sim.kill_watchdog(1.0))
    told(sim)
    assert lives(sim) == 28
