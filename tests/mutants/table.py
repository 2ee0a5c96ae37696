"""What is broken, where, and who must notice. `old` stands exactly once in its file."""

from __future__ import annotations

from dataclasses import dataclass

RULES = "tests/unit/test_rules.py"
REMEMBER = "tests/unit/test_remember.py"
STORIES = "tests/sim/test_stories.py"
POSTING = "tests/unit/test_posting.py"
MATRIX = "tests/sim/test_kill_matrix.py"
SERVER = "tests/tmux/test_tmux_server.py"
PROCESSES = "tests/tmux/test_tmux_processes.py"


@dataclass(frozen=True)
class Mutant:
    """One way to break it."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = (
    Mutant(
        "drops the colon of a target",
        "fleet/world/tmux_text.py",
        'return f"={name(session)}:"',
        'return f"={name(session)}"',
        "tests/unit/test_rows.py::test_a_target_is_exact_to_the_colon",
    ),
    Mutant(
        "matches sessions by prefix",
        "fleet/world/tmux_text.py",
        'return f"={name(session)}:"',
        'return f"{name(session)}:"',
        "tests/unit/test_rows.py::test_a_target_is_exact_to_the_colon",
    ),
    Mutant(
        "types into the dead",
        "fleet/world/tmux_text.py",
        'expected |= {"pane_dead": "0", "pane_in_mode": "0"}',
        "expected |= {}",
        f"{SERVER}::test_nothing_is_typed_into_a_dead_pane_or_into_copy_mode",
    ),
    Mutant(
        "trusts a pane id of another server",
        "fleet/world/tmux_text.py",
        '        "pid": str(ref.server.pid),\n        "start_time": str(ref.server.started),\n'
        '        "pane_id"',
        '        "pane_id"',
        "tests/contract/test_tmux_contract.py::test_a_stale_ref_is_refused_and_nothing_happens",
    ),
    Mutant(
        "signals whoever has the pid now",
        "fleet/world/processes.py",
        "if start_time(proc.pid) != proc.start:",
        "if start_time(proc.pid) is None:",
        f"{PROCESSES}::test_a_signal_for_a_process_of_another_start_is_not_sent",
    ),
    Mutant(
        "writes in place",
        "fleet/world/files.py",
        "fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _QUIET, FILE_MODE, dir_fd=where)",
        "temp = base\n"
        "            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE, dir_fd=where)",
        "tests/unit/test_store.py::test_150_kills_at_random_moments_lose_nothing",
    ),
    Mutant(
        "believes a damaged record",
        "fleet/journal/store.py",
        "    if not same:\n",
        "    if False:\n",
        "tests/unit/test_store.py::test_any_damage_is_set_aside_reported_and_the_predecessor_used",
    ),
    Mutant(
        "skips the fsync of an intent",
        "fleet/journal/intents.py",
        "self._append([asdict(i) for i in made], sync=True)",
        "self._append([asdict(i) for i in made], sync=False)",
        f"{MATRIX}::test_the_scene_ends_well_when_nothing_fails",
    ),
    Mutant(
        "acts before it is on record",
        "fleet/world/perform.py",
        'ids = self.house.intents.begin_all(noted)\n        self.world.point("start.remove")',
        'ids = ["0" * 16 for _ in noted]\n        self.world.point("start.remove")',
        f"{MATRIX}::test_the_scene_ends_well_when_nothing_fails",
    ),
    Mutant(
        "holds a lock that was taken away",
        "fleet/journal/locks.py",
        "return self._fd is not None and _is_at(self._fd, self.path)",
        "return self._fd is not None",
        "tests/unit/test_locks.py::test_a_lock_file_taken_away_or_replaced_is_noticed",
    ),
    Mutant(
        "believes a config that lost its agents",
        "fleet/world/reload.py",
        "if lost >= LEAST_LOST and lost * 2 > len(old.agents):",
        "if lost >= 10**6:",
        "tests/unit/test_reload.py::test_a_file_that_lost_more_than_half_of_its_agents_is_believed_after_a_minute",
    ),
    Mutant(
        "ignores desired before a start",
        "fleet/world/deeds.py",
        "return self.house.desired.load().wants_up(name)",
        "return True",
        f"{MATRIX}::test_a_down_at_any_port_call_wins",
    ),
    Mutant(
        "counts our own stops",
        "fleet/core/remember.py",
        "    if ours:\n",
        "    if False:\n",
        f"{REMEMBER}::test_our_own_stops_are_never_counted",
    ),
    Mutant(
        "takes the unseen for dead",
        "fleet/core/rules/intent.py",
        "    if seen.blind:\n",
        "    if False:\n",
        f"{RULES}::test_intent",
    ),
    Mutant(
        "heals the unknown",
        "fleet/core/rules/unknown.py",
        "    if memory.state != ScreenState.UNKNOWN or pane is None:\n        return None\n",
        "    if memory.state != ScreenState.UNKNOWN or pane is None:\n        return None\n"
        "    from fleet.core.rules.stopping import begin\n\n"
        '    return begin(case, "unknown", planned=False)\n',
        f"{STORIES}::test_an_unreadable_screen_is_never_healed",
    ),
    Mutant(
        "reboots the limited",
        "fleet/core/decide.py",
        '    ("limits", limits),\n    ("fatal", fatal),\n    ("heal", heal),\n    ("starting", starting),\n'
        '    ("identity"',
        '    ("fatal", fatal),\n    ("heal", heal),\n    ("starting", starting),\n    ("identity"',
        f"{RULES}::test_limited_beats_dead_wedged_mismatched_and_stalled",
    ),
    Mutant(
        "resumes before the reset",
        "fleet/core/rules/limits.py",
        "end = max(until + case.watchdog.limit_reset_slack, wall + MIN_AHEAD_S)",
        "end = max(until - 3600, wall + MIN_AHEAD_S)",
        f"{RULES}::test_the_window_ends_slack_after_the_reset",
    ),
    Mutant(
        "writes over a person's draft",
        "fleet/core/rules/typing.py",
        "    if reading.draft and not _is_ours(case, message, reading.draft):\n        return",
        "    if False:\n        return",
        f"{RULES}::test_typing",
    ),
    Mutant(
        "takes a person's words before ours for ours",
        "fleet/core/rules/typing.py",
        "return flat.endswith(tail) and (not text or text.endswith(flat))",
        "return flat.endswith(tail)",
        f"{STORIES}::test_a_person_who_begins_to_write_at_any_moment_is_not_spoken_for",
    ),
    Mutant(
        "presses Enter in a dialog without a key",
        "fleet/core/rules/asking.py",
        "if not reading.key or presses >= TRIES:",
        "if presses >= TRIES:",
        f"{RULES}::test_asking",
    ),
    Mutant(
        "restarts without a pause",
        "fleet/core/budget.py",
        "    if number <= 0:\n        return 0.0\n",
        "    if True:\n        return 0.0\n",
        f"{REMEMBER}::test_an_agent_that_was_never_ready_waits",
    ),
    Mutant(
        "has no budget for the fleet",
        "fleet/core/budget.py",
        "    minute = sum(now - t < MINUTE_S for t in heals)\n",
        "    minute = -(10**6)\n    heals = ()\n",
        f"{REMEMBER}::test_the_fleet_has_a_budget_too",
    ),
    Mutant(
        "starts beside survivors",
        "fleet/core/rules/heal.py",
        "    if case.seen.survivors:\n        return begin(",
        "    if False:\n        return begin(",
        f"{RULES}::test_heal",
    ),
    Mutant(
        "lets a suspend make everybody older",
        "fleet/world/ages.py",
        "if first or not (abs(drift) > JUMP_S or overslept):",
        "if True:",
        f"{STORIES}::test_an_agent_is_not_older_for_what_a_stopped_watchdog_missed",
    ),
    Mutant(
        "measures its own absence by the wall clock",
        "fleet/world/ages.py",
        "away = mono - memory.mono if memory.mono and mono >= memory.mono else wall - memory.wall",
        "away = wall - memory.wall",
        f"{STORIES}::test_a_wall_clock_set_while_nobody_watched_makes_nobody_older",
    ),
    Mutant(
        "takes a first look at the processor for a verdict",
        "fleet/world/sense.py",
        "measured = compared and (busy or elapsed >= MEASURED_S)",
        "measured = True",
        f"{STORIES}::test_a_restarted_watchdog_does_not_take_long_work_for_a_stall",
    ),
    Mutant(
        "begins every conversation anew",
        "fleet/world/perform.py",
        'resume_id = known if can_resume and order.resume else ""',
        'resume_id = ""',
        f"{STORIES}::test_a_conversation_on_record_is_resumed",
    ),
    Mutant(
        "knows a session only by its name",
        "fleet/world/sense.py",
        "    for spec in absent:\n",
        "    for spec in ():\n",
        f"{STORIES}::test_a_renamed_session_is_neither_stopped_nor_started_twice",
    ),
    Mutant(
        "posts again without asking for the name",
        "fleet/world/mail.py",
        "if letter.again and self._known(letter):",
        "if False:",
        f"{POSTING}::test_carried_again_it_arrives_exactly_once_whatever_became_of_the_first",
    ),
    Mutant(
        "types what its server may have",
        "fleet/core/rules/posting.py",
        "if outcome is Posted.REFUSED:",
        "if outcome in {Posted.REFUSED, Posted.UNSURE}:",
        f"{POSTING}::test_a_lost_answer_is_asked_about_again_with_the_same_name_and_never_typed",
    ),
    Mutant(
        "takes the words of an earlier program for the agent's",
        "fleet/backends/layout.py",
        "if self.header and self.header.match(line):",
        "if False:",
        "tests/unit/test_screen_variants.py::test_what_an_earlier_life_left_above_changes_nothing",
    ),
)
