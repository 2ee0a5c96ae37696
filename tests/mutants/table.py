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
VERBS = "tests/sim/test_verbs.py"
GATES = "tests/unit/test_gates.py"
HANDOFF = "tests/unit/test_handoff.py"
PHASES = "tests/unit/test_phases.py"
COMPLETE = "tests/unit/test_complete.py"


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
        "fleet/host/tmux/language.py",
        'return f"={name(session)}:"',
        'return f"={name(session)}"',
        "tests/unit/test_rows.py::test_a_target_is_exact_to_the_colon",
    ),
    Mutant(
        "matches sessions by prefix",
        "fleet/host/tmux/language.py",
        'return f"={name(session)}:"',
        'return f"{name(session)}:"',
        "tests/unit/test_rows.py::test_a_target_is_exact_to_the_colon",
    ),
    Mutant(
        "types into the dead",
        "fleet/host/tmux/language.py",
        "if typing or field not in _TYPING:",
        "if field not in _TYPING:",
        f"{SERVER}::test_nothing_is_typed_into_a_dead_pane_or_into_copy_mode",
    ),
    Mutant(
        "heeds the reset of a service and forgets nothing",
        "fleet/core/pardon.py",
        "after = forget(memory, case.now.wall, window=reset)",
        "after = forget(memory, case.now.wall, window=reset) if case.agent.has_screen else memory",
        f"{VERBS}::test_reset_forgives_a_service_that_was_given_up",
    ),
    Mutant(
        "trusts a pane id of another server",
        "fleet/host/tmux/language.py",
        '        "pid": str(ref.server.pid),\n        "start_time": str(ref.server.started),\n'
        '        "pane_id"',
        '        "pane_id"',
        "tests/contract/test_tmux_contract.py::test_a_stale_ref_is_refused_and_nothing_happens",
    ),
    Mutant(
        "signals whoever has the pid now",
        "fleet/host/processes.py",
        "if proc.start and start_time(proc.pid) != proc.start:",
        "if start_time(proc.pid) is None:",
        f"{PROCESSES}::test_a_signal_for_a_process_of_another_start_is_not_sent",
    ),
    Mutant(
        "writes in place",
        "fleet/host/disk.py",
        "fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _QUIET, FILE_MODE, dir_fd=where)",
        "temp = base\n"
        "            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE, dir_fd=where)",
        "tests/unit/test_store.py::test_150_kills_at_random_moments_lose_nothing",
    ),
    Mutant(
        "believes a damaged record",
        "fleet/store/documents.py",
        "    if not same:\n",
        "    if False:\n",
        "tests/unit/test_store.py::test_any_damage_is_set_aside_reported_and_the_predecessor_used",
    ),
    Mutant(
        "skips the fsync of a cause",
        "fleet/store/eventlog.py",
        "self._disk.append(self.path, data, sync=bool(synced))",
        "self._disk.append(self.path, data, sync=False)",
        f"{MATRIX}::test_the_scene_ends_well_when_nothing_fails",
    ),
    Mutant(
        "acts before it is on record",
        "fleet/supervisor/perform.py",
        'self.house.events.begin([Begun("start",',
        'list([Begun("start",',
        f"{MATRIX}::test_the_scene_ends_well_when_nothing_fails",
    ),
    Mutant(
        "holds a lock that was taken away",
        "fleet/store/locks.py",
        "return self._fd is not None and _is_at(self._fd, self.path)",
        "return self._fd is not None",
        "tests/unit/test_locks.py::test_a_lock_file_taken_away_or_replaced_is_noticed",
    ),
    Mutant(
        "believes a config that lost its agents",
        "fleet/supervisor/reload.py",
        "if lost >= LEAST_LOST and lost * 2 > len(old.agents):",
        "if lost >= 10**6:",
        "tests/unit/test_reload.py::test_a_file_that_lost_more_than_half_of_its_agents_is_believed_after_a_minute",
    ),
    Mutant(
        "ignores desired before a start",
        "fleet/supervisor/act.py",
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
        "fleet/core/agent/wish.py",
        "    if seen.blind:\n",
        "    if False:\n",
        f"{RULES}::test_intent",
    ),
    Mutant(
        "heals the unknown",
        "fleet/core/agent/unknown.py",
        "    if memory.state != ScreenState.UNKNOWN or pane is None:\n        return None\n",
        "    if memory.state != ScreenState.UNKNOWN or pane is None:\n        return None\n"
        "    from fleet.core.agent.stopping import begin\n\n"
        '    return begin(case, "unknown", planned=False)\n',
        f"{STORIES}::test_an_unreadable_screen_is_never_healed",
    ),
    Mutant(
        "reboots the limited",
        "fleet/core/agent/decide.py",
        '    ("limits", limits),\n    ("fatal", fatal),\n    ("heal", heal),\n    ("starting", starting),\n'
        '    ("identity"',
        '    ("fatal", fatal),\n    ("heal", heal),\n    ("starting", starting),\n    ("identity"',
        f"{RULES}::test_limited_beats_dead_wedged_mismatched_and_stalled",
    ),
    Mutant(
        "resumes before the reset",
        "fleet/core/agent/limits.py",
        "named = max(later(until, slack), now.after_wall(MIN_AHEAD_S))",
        "named = max(later(until, -3600), now.after_wall(MIN_AHEAD_S))",
        f"{RULES}::test_the_window_ends_slack_after_the_reset",
    ),
    Mutant(
        "writes over a person's draft",
        "fleet/core/agent/typing.py",
        "    if reading.draft and not _is_ours(case, message, reading.draft):\n        return",
        "    if False:\n        return",
        f"{RULES}::test_typing",
    ),
    Mutant(
        "takes a person's words before ours for ours",
        "fleet/core/agent/typing.py",
        "if tail and flat.endswith(tail) and (not text or text.endswith(flat)):",
        "if tail and flat.endswith(tail):",
        f"{STORIES}::test_a_person_who_begins_to_write_at_any_moment_is_not_spoken_for",
    ),
    Mutant(
        "types into a composer that runs commands",
        "fleet/core/agent/typing.py",
        '    if reading.commands:\n        return "its composer',
        '    if False:\n        return "its composer',
        f"{RULES}::test_typing",
    ),
    Mutant(
        "presses Enter in a dialog without a key",
        "fleet/core/agent/asking.py",
        "if not reading.key or presses >= TRIES:",
        "if presses >= TRIES:",
        f"{RULES}::test_asking",
    ),
    Mutant(
        "restarts without a pause",
        "fleet/core/restarts.py",
        "    if number <= 0:\n        return 0.0\n",
        "    if True:\n        return 0.0\n",
        f"{REMEMBER}::test_an_agent_that_was_never_ready_waits",
    ),
    Mutant(
        "has no budget for the fleet",
        "fleet/core/restarts.py",
        "    minute = sum(now - t < MINUTE_S for t in heals)\n",
        "    minute = -(10**6)\n    heals = ()\n",
        f"{REMEMBER}::test_the_fleet_has_a_budget_too",
    ),
    Mutant(
        "starts beside survivors",
        "fleet/core/agent/heal.py",
        "    if case.seen.survivors:\n        return begin(",
        "    if False:\n        return begin(",
        f"{RULES}::test_heal",
    ),
    Mutant(
        "lets a suspend make everybody older",
        "fleet/supervisor/ages.py",
        "if first or not (abs(drift) > JUMP_S or overslept):",
        "if True:",
        f"{STORIES}::test_an_agent_is_not_older_for_what_a_stopped_watchdog_missed",
    ),
    Mutant(
        "measures its own absence by the wall clock",
        "fleet/supervisor/ages.py",
        "away = mono - memory.mono if memory.mono and mono >= memory.mono else wall - memory.wall",
        "away = wall - memory.wall",
        f"{STORIES}::test_a_wall_clock_set_while_nobody_watched_makes_nobody_older",
    ),
    Mutant(
        "takes a first look at the processor for a verdict",
        "fleet/supervisor/look.py",
        "measured = compared and (busy or elapsed >= MEASURED_S)",
        "measured = True",
        f"{STORIES}::test_a_restarted_watchdog_does_not_take_long_work_for_a_stall",
    ),
    Mutant(
        "begins every conversation anew",
        "fleet/supervisor/perform.py",
        'resume_id = known if known and may and self._is_kept(agent, backend, known, held) else ""',
        'resume_id = ""',
        f"{STORIES}::test_a_conversation_on_record_is_resumed",
    ),
    Mutant(
        "knows a session only by its name",
        "fleet/supervisor/look.py",
        "    for spec in absent:\n",
        "    for spec in ():\n",
        f"{STORIES}::test_a_renamed_session_is_neither_stopped_nor_started_twice",
    ),
    Mutant(
        "posts again without asking for the name",
        "fleet/supervisor/cli_servers.py",
        "if letter.again and self._known(letter):",
        "if False:",
        f"{POSTING}::test_carried_again_it_arrives_exactly_once_whatever_became_of_the_first",
    ),
    Mutant(
        "types what its server may have",
        "fleet/core/agent/posting.py",
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
    Mutant(
        "goes on without a done marker",
        "fleet/core/loop/phases.py",
        "    if not status.reading.done:\n",
        "    if False:\n",
        f"{PHASES}::test_a_phase_that_is_not_done_stays",
    ),
    Mutant(
        "believes a marker at first sight",
        "fleet/core/loop/phases.py",
        "    if known and now - since >= settle:\n",
        "    if True:\n",
        f"{PHASES}::test_done_is_believed_only_when_it_was_seen_twice",
    ),
    Mutant(
        "leaves out a phase",
        "fleet/core/loop/phases.py",
        "place_at(case.loop, place.index + 1, now",
        "place_at(case.loop, place.index + 2, now",
        f"{PHASES}::test_an_advance_is_by_one_with_its_evidence",
    ),
    Mutant(
        "runs the plan that has the number now",
        "fleet/core/loop/phases.py",
        "if place.index < len(ids) and ids[place.index] == place.id:",
        "if place.index < len(ids):",
        f"{PHASES}::test_a_phase_list_edit_never_runs_the_wrong_plan",
    ),
    Mutant(
        "passes a gate that failed",
        "fleet/core/loop/gates.py",
        "        if not result.ok:\n",
        "        if False:\n",
        f"{GATES}::test_a_failure_stops_the_rest_and_is_told_once_with_its_log",
    ),
    Mutant(
        "keeps a gate's answer for another work tree",
        "fleet/core/loop/gates.py",
        "        commit = seen.git.tree.key if seen.git.head and seen.git.tree else seen.git.head\n",
        "        commit = seen.git.head\n",
        f"{GATES}::test_a_result_belongs_to_the_commit_and_the_work_tree",
    ),
    Mutant(
        "steps on an old look at the work tree",
        "fleet/core/loop/gates.py",
        "    return git.tree.at >= proved and not _old(git.tree.at, case.now.wall)\n",
        "    return True\n",
        f"{GATES}::test_the_work_tree_is_looked_at_before_the_gates_and_before_the_step",
    ),
    Mutant(
        "tells of a commit of another phase",
        "fleet/core/loop/handoff.py",
        "c.hash not in before and not _of_another_phase(case, c)",
        "c.hash not in before",
        f"{HANDOFF}::test_a_commit_that_names_another_phase_came_late_and_is_not_told",
    ),
    Mutant(
        "takes the whole history for news",
        "fleet/core/loop/handoff.py",
        "tip=begun or git.tip or EMPTY)",
        "tip=begun or EMPTY)",
        f"{HANDOFF}::test_first_sight_is_a_baseline_and_wakes_nobody",
    ),
    Mutant(
        "tells a rebased claim again",
        "fleet/core/loop/handoff.py",
        "if commit.hash in shaken or (commit.at, commit.subject) not in before:",
        "if True:",
        f"{HANDOFF}::test_rewritten_commits_are_not_told_again_and_new_ones_are",
    ),
    Mutant(
        "sends a ping of an older phase",
        "fleet/core/queue.py",
        'm.phase not in {"", phase})',
        "False)",
        f"{RULES}::test_a_ping_of_another_phase_is_withdrawn_before_it_is_typed",
    ),
    Mutant(
        "follows the repository of a loop that is complete",
        "fleet/core/loop/decide_loop.py",
        "partial(handoff, quiet=ended)",
        "partial(handoff, quiet=False)",
        f"{COMPLETE}::test_a_complete_loop_keeps_up_with_the_repository_and_wakes_nobody",
    ),
    Mutant(
        "takes a freeze for over before it is on record",
        "fleet/supervisor/look.py",
        "            entry.frozen,\n            held,",
        "            entry.frozen and not over,\n            held,",
        f"{STORIES}::test_a_freeze_whose_end_no_disk_would_take_is_no_stall",
    ),
    Mutant(
        "hears a hook only where the screen moves",
        "fleet/supervisor/look.py",
        "asked = fresh is not None or name in due or self._has_news(fleet, spec)",
        "asked = fresh is not None or name in due",
        f"{STORIES}::test_a_hook_is_heard_at_once_though_nothing_moves_on_the_screen",
    ),
    Mutant(
        "uses an answer only at the next look",
        "fleet/supervisor/cli_servers.py",
        "                    self.ring()  #",
        "                    pass  #",
        f"{STORIES}::test_what_a_server_answers_is_heard_when_it_comes",
    ),
    Mutant(
        "lets old dates win after the clock was set back",
        "fleet/supervisor/hear.py",
        "if ear.heard.newest > latest:",
        "if False:",
        f"{STORIES}::test_what_a_cli_reports_after_the_clock_was_set_back_is_heard",
    ),
    Mutant(
        "withdraws the probe that it sends",
        "fleet/core/queue.py",
        "    memory = advance(memory, message)  # before",
        "    memory = advance(withdrawn(memory), message)  # before",
        f"{STORIES}::test_the_probe_at_the_end_of_a_window_goes_by_the_server",
    ),
    Mutant(
        "says complete while the loops run",
        "fleet/core/loop/complete.py",
        "if seen.alive and now - since < STOP_PATIENCE_S:",
        "if False:",
        f"{COMPLETE}::test_the_marker_waits_for_the_loops_to_stop",
    ),
    Mutant(
        "forgets the task with its trigger",
        "fleet/core/loop/complete.py",
        "    token = trigger or known\n",
        "    token = trigger\n",
        f"{COMPLETE}::test_the_trigger_is_consumed_and_the_task_stays_asked_for",
    ),
    Mutant(
        "leaves a marker that is not true",
        "fleet/core/loop/complete.py",
        "if case.seen.marker else ()",
        "if False else ()",
        f"{COMPLETE}::test_a_marker_that_is_not_true_is_cleared",
    ),
    Mutant(
        "lets an agent work on in a phase that is over",
        "fleet/core/agent/turnover.py",
        "phase != loop.phase and not loop.keep_runs:",
        "phase != loop.phase and False:",
        f"{RULES}::test_turnover",
    ),
    Mutant(
        "starts loop agents after the end",
        "fleet/core/agent/turnover.py",
        "    if case.is_loop and loop.complete:\n",
        "    if False:\n",
        f"{RULES}::test_turnover",
    ),
    Mutant(
        "runs the closing task beside its old run",
        "fleet/core/agent/turnover.py",
        "    if run.made_for.call < case.seen.wish.run:\n",
        "    if False:\n",
        f"{RULES}::test_turnover_of_a_call",
    ),
    Mutant(
        "takes a turn that the limit ended for work",
        "fleet/core/agent/limits.py",
        " and case.seen.heard_at >= since",
        "",
        "tests/unit/test_limits.py::test_each_row_takes_a_window_where_the_table_says",
    ),
    Mutant(
        "forgets what was called for",
        "fleet/core/agent/bringup.py",
        "answered >= case.seen.wish.run",
        "answered >= 0",
        f"{RULES}::test_bringup",
    ),
    Mutant(
        "starts beside what is left of the last run",
        "fleet/core/agent/bringup.py",
        "    if (waits := last_run(case, planned=True)) is not None:\n        return waits\n",
        "",
        f"{RULES}::test_bringup",
    ),
    Mutant(
        "up without a wish",
        "fleet/verbs/up.py",
        "wanted = desired.set(names, want=Want.UP, **changes)",
        "wanted = desired.set(names, **changes)",
        f"{VERBS}::test_down_and_up_by_name",
    ),
    Mutant(
        "down without a wish",
        "fleet/verbs/down.py",
        'with operator.lease(members, "down", lambda d: d.set(members, want=Want.DOWN)):',
        'with operator.lease(members, "down", lambda d: d):',
        f"{VERBS}::test_down_and_up_by_name",
    ),
    Mutant(
        "a stop that only asks",
        "fleet/host/ending.py",
        "table.signal(left, signal.SIGKILL)",
        "table.signal(left, signal.SIGTERM)",
        f"{VERBS}::test_down_ends_what_does_not_listen_and_the_children_it_left",
    ),
    Mutant(
        "a start beside what an earlier run left",
        "fleet/core/agent/heal.py",
        "    if case.seen.survivors:\n        return begin(",
        "    if False:\n        return begin(",
        f"{VERBS}::test_a_start_ends_what_an_earlier_run_left_behind",
    ),
    Mutant(
        "a down that leaves the watchdog",
        "fleet/supervisor/operator.py",
        "            self._end(Proc(holder.pid, holder.start, 0, 0, WATCHDOG), WATCHDOG_STOP_S)\n",
        "            pass\n",
        f"{VERBS}::test_a_watchdog_whose_session_went_with_its_server_is_ended_by_its_identity",
    ),
    Mutant(
        "a bare up without a watchdog",
        "fleet/verbs/up.py",
        "    why = operator.start_watchdog(watchdog_argv(operator.fleet))\n",
        '    why = ""\n',
        f"{VERBS}::test_a_bare_down_ends_the_watchdog_as_well_and_a_bare_up_brings_all_back",
    ),
    Mutant(
        "a restart that stops nobody",
        "fleet/verbs/restart.py",
        "return wanted.call(s.name for s in free)",
        "return wanted.call(())",
        f"{VERBS}::test_restart_makes_a_new_run_of_the_same_conversation_and_fresh_a_new_one",
    ),
    Mutant(
        "a fresh restart that goes on as before",
        "fleet/verbs/restart.py",
        "        if args.fresh:\n",
        "        if False:\n",
        f"{VERBS}::test_restart_makes_a_new_run_of_the_same_conversation_and_fresh_a_new_one",
    ),
    Mutant(
        "a pause that is not on record",
        "fleet/verbs/pause.py",
        'changes = {"paused": True, "until": until,',
        'changes = {"until": until,',
        f"{VERBS}::test_a_paused_agent_is_not_healed_until_it_is_unpaused",
    ),
    Mutant(
        "an unpause that lets nobody go",
        "fleet/verbs/unpause.py",
        "    operator.thaw(names)\n",
        "",
        f"{VERBS}::test_a_frozen_agent_stands_still_until_it_is_unpaused",
    ),
    Mutant(
        "a pause that never ends",
        "fleet/supervisor/perform.py",
        "left = self.house.desired.update(lambda d: d.end_pauses([action.agent], wall))",
        "left = self.house.desired.load()",
        f"{VERBS}::test_a_pause_with_an_end_is_taken_back_by_the_watchdog",
    ),
    Mutant(
        "a thaw that is not on record",
        "fleet/supervisor/perform.py",
        '            self._begin("signal", [(action.agent, action.run, action.cause)])\n',
        "",
        f"{VERBS}::test_a_pause_with_an_end_is_taken_back_by_the_watchdog",
    ),
    Mutant(
        "a send that always says delivered",
        "fleet/verbs/send.py",
        'fine = bool(rows) and all(r["ok"] for r in rows.values())',
        "fine = True",
        f"{VERBS}::test_send_says_0_for_what_was_heard_once_and_1_for_what_was_not",
    ),
    Mutant(
        "a send that nobody serves without a watchdog",
        "fleet/verbs/delivery.py",
        "            clock.sleep(min(self._dog.tick(), 0.2))\n",
        "            clock.sleep(0.2)\n",
        f"{VERBS}::test_send_without_a_watchdog_is_one_for_that_long",
    ),
    Mutant(
        "a reset that keeps the verdict",
        "fleet/core/pardon.py",
        'retry_at=NEVER, fatal="", fix="",',
        "retry_at=NEVER,",
        f"{VERBS}::test_reset_forgives_one_that_was_given_up",
    ),
    Mutant(
        "a phase that leaves its agents behind",
        "fleet/verbs/phase.py",
        "replace(place, keep_runs=keep,",
        "replace(place, keep_runs=True,",
        f"{VERBS}::test_phase_set_moves_the_running_agents_with_the_loop",
    ),
)
