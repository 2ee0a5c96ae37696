"""Turn what was just seen into what is remembered, before any rule is asked.

Only facts are updated here: which run is alive, since when the screen says what it says, how a run
ended. What follows from them is for the rules.
"""

from __future__ import annotations

from typing import Any

from fleet.core import restarts
from fleet.core.case import Case
from fleet.core.decision import Note
from fleet.core.desired import Want
from fleet.core.memory import AgentMemory, FleetMemory, Message, Run
from fleet.core.seen import PaneView, Reading, ScreenState, ServerId
from fleet.core.words import Detail, EventType, MessageKind, MessageState
from fleet.times.moment import NEVER, UNNAMED, Moment, Steady, Wall

READY_STATES = frozenset(
    {
        ScreenState.IDLE,
        ScreenState.WORKING,
        ScreenState.LIMITED,
        ScreenState.RETRYING,
        ScreenState.ERROR,
        ScreenState.CONTEXT,
    }
)
WORKING_STATES = frozenset({ScreenState.WORKING, ScreenState.RETRYING})
LOOKS_MAX = 3  # no rule asks for more looks in a row
QUARREL_S = 30.0  # a source may lag this far behind the screen before that means something
SETTLED_S = 0.3  # a program that lives this long has got past exec
SERVICE_READY_S = 1.0
ECHO_S = 3.0  # after our own typing a change on the screen is our echo, not work
BOOTED_S = 90.0  # a run that ended unseen, longer after its start, may have been well: it did not die of that
HORIZON_S = 8 * 86_400.0  # the longest limit window that is believed, however it was named
REAP_S = 3.0  # how long an exit status may be missing before we do without


def remember(case: Case) -> tuple[AgentMemory, tuple[Note, ...]]:
    """The memory brought up to this look, and what happened meanwhile."""
    seen, memory = case.seen, case.memory
    if seen.blind:
        return memory, ()
    events: list[Note] = []
    memory = _believable(memory, case.now.wall)
    pane = seen.pane
    if pane is not None and not pane.dead:
        if pane.ref.run != memory.seen_run:
            memory = _adopt(memory, case, pane)
        elif case.resumed or _was_left_alone(case):
            memory = _restart_ages(memory, case.news_at)
        if memory.detail == Detail.UNSEEN:
            memory = memory._replace(outbox=tuple(_seen_again(m, case.now.steady) for m in memory.outbox))
        memory = _watch_screen(memory, case)
        memory = _note_quarrel(memory, case, events)
        memory = _note_ready(memory, case, events)
        memory = _forgive(memory, case, events)
    else:
        memory = _note_end(memory, case, events)
    return memory, tuple(events)


def _believable(memory: AgentMemory, wall: Wall) -> AgentMemory:
    """No window is armed beyond the horizon: one that ends later was armed before the clock was set back."""
    limit = memory.limit
    if limit is None or limit.until - wall <= HORIZON_S:
        return memory
    return memory._replace(limit=limit._replace(until=wall, named=UNNAMED))


def _adopt(memory: AgentMemory, case: Case, pane: PaneView) -> AgentMemory:
    """A run we have not seen before: everything that was about the old one is void."""
    steady = case.news_at
    known = memory.run is not None and memory.run.id == pane.ref.run
    # tmux knows whole seconds only
    born = memory.run.started if memory.run is not None and known else UNNAMED
    age = min(max(0.0, case.now.since_wall(max(born, pane.created))), 3600.0)
    stopping = memory.stopping if memory.stopping and memory.stopping.run == pane.ref.run else None
    kept = tuple(_requeue(m, pane.ref.run) for m in memory.outbox if _still_owed(m, pane.ref.run))
    owed = _kickoff(memory.run, pane.ref.run, steady)
    # begun after the end of its window, it is the probe itself, and its banner is a new one
    limit = memory.limit if memory.limit and memory.limit.until > case.now.wall else None
    return memory._replace(
        seen_run=pane.ref.run,
        ready=NEVER,
        alive_since=case.now.after(-age),
        quiet_since=steady,
        content="",
        still_since=steady,
        state=None,
        state_since=steady,
        state_looks=0,
        shell_since=NEVER,
        limit=limit,
        limit_hint=NEVER,
        marker=UNNAMED,
        bad_marker="",
        pressed="",
        presses=0,
        woke=steady,
        stopping=stopping,
        planned=False,
        afresh=False,
        outbox=kept if owed is None or owed.id in {m.id for m in kept} else (owed, *kept),
    )


def _kickoff(run: Run | None, seen: str, steady: Steady) -> Message | None:
    """A backend that takes its prompt by typing is still owed it."""
    if run is None or run.id != seen or run.delivery != "ping" or not run.kickoff:
        return None
    name = f"kickoff-{run.id}"
    return Message(name, MessageKind.KICKOFF, file=run.kickoff, tail=run.tail, queued=steady, run=run.id)


def _still_owed(message: Message, run: str) -> bool:
    """A kickoff belongs to the run it was written for, a probe to its window; the rest to the agent."""
    if message.kind is MessageKind.PROBE:
        return message.run == run
    return message.kind is not MessageKind.KICKOFF or message.run in {"", run}


def _requeue(message: Message, run: str) -> Message:
    """What was typed into a run that is gone was never read."""
    if message.status is MessageState.QUEUED or message.run == run:
        return message
    if message.status is MessageState.SUBMITTED and message.kind is MessageKind.SEND:
        return message  # it may have been read: the receipts rule says so, and it is not typed again
    return message._replace(status=MessageState.QUEUED, enters=0, run="")


def _was_left_alone(case: Case) -> bool:
    """Was it paused until this look? How long it kept still then does not count."""
    want = case.seen.wish
    return case.memory.detail in {Detail.PAUSED, Detail.FROZEN} and not (want.paused or want.frozen)


def _seen_again(message: Message, steady: Steady) -> Message:
    """While it was unseen, no time ran out: what a hung server was asked to type may show up only now."""
    return message if message.status is MessageState.QUEUED else message._replace(at=steady)


def _restart_ages(memory: AgentMemory, steady: Steady) -> AgentMemory:
    """After a suspend no agent has been idle and no stop has waited: the machine stood still."""
    stop = memory.stopping._replace(at=steady) if memory.stopping else None
    return memory._replace(
        quiet_since=steady, still_since=steady, shell_since=NEVER, state_looks=0, stopping=stop
    )


def _watch_screen(memory: AgentMemory, case: Case) -> AgentMemory:
    """Since when the screen shows what it shows, and since when there is no sign of work."""
    read = _read_changes(memory, case)
    state = read.get("state", memory.state)
    changes = {**_output_changes(memory, case), **read, **_work_changes(memory, case, state)}
    shell = case.seen.proc.shell_only or state == ScreenState.SHELL
    if shell != bool(memory.shell_since):
        changes["shell_since"] = case.news_at if shell else NEVER
    return memory._replace(**changes) if changes else memory


def _output_changes(memory: AgentMemory, case: Case) -> dict[str, Any]:
    pane = case.seen.pane
    if pane is None or pane.activity == memory.activity:
        return {}
    return {"activity": pane.activity, "still_since": case.news_at}


def _read_changes(memory: AgentMemory, case: Case) -> dict[str, Any]:
    """What this look read on the screen: the state, how often in a row, and whether the content moved."""
    reading, steady = case.seen.reading, case.news_at
    if reading is None:
        return {}
    changes: dict[str, Any] = {}
    state, looks = _state(case, reading), 1
    if state == memory.state:
        looks = memory.state_looks + int(case.seen.fresh)
    else:
        changes |= {"state": state, "state_since": steady}
    if looks != memory.state_looks and looks <= LOOKS_MAX:
        changes["state_looks"] = looks
    if reading.content_hash != memory.content:
        changes |= {"content": reading.content_hash, "still_since": steady}
        if not memory.content or steady - _last_typed(memory) > ECHO_S:
            changes["quiet_since"] = steady
    return changes


def _work_changes(memory: AgentMemory, case: Case, state: ScreenState | None) -> dict[str, Any]:
    """The newest sign of work that is not a change of the content."""
    seen, steady = case.seen, case.news_at
    if seen.transcript > memory.quiet_since:
        return {"quiet_since": steady if seen.transcript >= case.now.steady else seen.transcript}
    works = state in WORKING_STATES or seen.working or seen.proc.busy
    return {"quiet_since": steady} if works else {}


def _state(case: Case, reading: Reading) -> ScreenState:
    """Structured sources outrank the screen about work; the screen about everything they do not say.

    That a turn has ended does not say what stands on the screen now: what no pattern describes is not idle.
    """
    if case.seen.working and reading.state in {ScreenState.IDLE, ScreenState.UNKNOWN}:
        return ScreenState.WORKING
    if case.seen.asked and reading.state in {ScreenState.IDLE, ScreenState.UNKNOWN, ScreenState.WORKING}:
        return ScreenState.ASKING
    return reading.state


def _note_quarrel(memory: AgentMemory, case: Case, events: list[Note]) -> AgentMemory:
    """Two sources that go on saying different things: that is how a pattern that has rotted is noticed."""
    seen = case.seen
    if seen.working is None or seen.reading is None or case.now.since_wall(seen.heard_at) < QUARREL_S:
        return memory
    screen = seen.reading.state
    if (screen in WORKING_STATES) is seen.working or screen not in {*WORKING_STATES, ScreenState.IDLE}:
        return memory
    said = f"{memory.seen_run}:{screen}:{seen.working}"
    if memory.disagreed == said:
        return memory
    what = "working" if seen.working else "not working"
    said_both = f"the screen says {screen}, {seen.heard_from} says {what}"
    events.append(Note(EventType.SIGNAL_DISAGREED, said_both))
    return memory._replace(disagreed=said)


def _last_typed(memory: AgentMemory) -> Steady:
    newest = memory.typed[-1] if memory.typed else NEVER
    return max([newest, *(m.at for m in memory.outbox if m.status is not MessageState.QUEUED)])


def _note_ready(memory: AgentMemory, case: Case, events: list[Note]) -> AgentMemory:
    if memory.ready or case.now.since(memory.alive_since) < SETTLED_S:
        return memory
    if not case.agent.has_screen:
        ready = case.now.since(memory.alive_since) >= SERVICE_READY_S
    else:
        ready = memory.state in READY_STATES or case.seen.working is not None
    if not ready:
        return memory
    how = f"{memory.state or 'alive'} {case.now.since(memory.alive_since):.1f} s after start"
    events.append(Note(EventType.AGENT_READY, how))
    return memory._replace(ready=case.now.steady, bad_resumes=0)


def _forgive(memory: AgentMemory, case: Case, events: list[Note]) -> AgentMemory:
    if not memory.ready or case.now.since(memory.ready) < restarts.FORGIVEN_AFTER_S:
        return memory
    if not (memory.deaths or memory.exits or memory.flapping):
        return memory
    if memory.flapping:
        events.append(Note(EventType.AGENT_RECOVERED, "ready for half an hour"))
    return memory._replace(deaths=(), exits=(), flapping=NEVER, retry_at=NEVER)


def _note_end(memory: AgentMemory, case: Case, events: list[Note]) -> AgentMemory:
    """Count the end of a run once, and only if neither the watchdog nor a verb asked for it."""
    pane, seen, stop = case.seen.pane, case.seen, memory.stopping
    run = pane.ref.run if pane is not None else memory.seen_run
    if not run or memory.over == run:
        return memory
    if pane is not None and pane.unreaped and (waits := _await_status(memory, case)) is not None:
        return waits
    ours = stop.planned if stop else seen.wish.want is not Want.UP or _was_replaced(case, run)
    finished = run if _has_finished(case, pane) else memory.finished
    ready = _was_ready(memory, run, case)
    memory = memory._replace(over=run, seen_run=run, planned=ours, ready=ready, finished=finished)
    how = stop.cause if stop else _how(pane)
    if ours:
        events.append(Note(EventType.AGENT_STOPPED, how))
        return memory._replace(retry_at=NEVER)
    if seen.server_lost:
        events.append(Note(EventType.AGENT_DIED, "its tmux server is gone"))
        return memory._replace(retry_at=NEVER)
    clean = stop is None and pane is not None and pane.finished
    events.append(Note(EventType.AGENT_EXITED if clean else EventType.AGENT_DIED, how))
    memory, flapped = restarts.count_end(memory, case.now.steady, clean=clean, run=run)
    if flapped:
        events.append(Note(EventType.AGENT_FLAPPED, flapped))
    return memory


def _await_status(memory: AgentMemory, case: Case) -> AgentMemory | None:
    """Memory while tmux has not collected the exit status; None: it is done without."""
    if memory.state != ScreenState.DEAD:  # the next look, a moment later, will have it
        return memory._replace(state=ScreenState.DEAD, still_since=case.now.steady, state_looks=1)
    return memory if case.now.since(memory.still_since) < REAP_S else None


def _was_ready(memory: AgentMemory, run: str, case: Case) -> Steady:
    """When the run that ended was ready. One that was never seen alive was not, unless it began long ago."""
    if run == memory.seen_run:
        return memory.ready
    return case.now.steady if _began(memory, run, case) > BOOTED_S else NEVER


def _was_replaced(case: Case, run: str) -> bool:
    """A run older than the newest call was ended to make room for another."""
    known = case.memory.run
    return known is not None and known.id == run and known.made_for.call < case.seen.wish.run


def _began(memory: AgentMemory, run: str, case: Case) -> float:
    """How many seconds ago a run was started, by its record; 0 where there is none."""
    known = memory.run is not None and memory.run.id == run
    return case.now.since_wall(memory.run.started) if memory.run is not None and known else 0.0


def _has_finished(case: Case, pane: PaneView | None) -> bool:
    """A task whose work is done; one that a person took down is not."""
    clean = pane is not None and pane.finished
    return case.agent.is_task and clean and case.memory.stopping is None and case.seen.wish.want is Want.UP


def _how(pane: PaneView | None) -> str:
    if pane is None:
        return "its session is gone"
    known = pane.exit_signal is not None or pane.exit_code is not None
    return pane.ending if known else "ended; tmux knows no exit status"


def with_server(
    memory: FleetMemory, server: ServerId | None, now: Moment
) -> tuple[FleetMemory, tuple[Note, ...]]:
    """The tmux server that is seen, and what became of the one that was."""
    known = (memory.server_pid, memory.server_started)
    here = (server.pid, server.started) if server else (0, 0)
    if known == here:
        return memory, ()
    notes: list[Note] = []
    changed = memory._replace(server_pid=here[0], server_started=here[1])
    if memory.server_pid:
        changed = changed._replace(server_lost=now.steady)
        notes.append(Note(EventType.SERVER_LOST, f"the tmux server {memory.server_pid} is gone"))
    if server:
        notes.append(Note(EventType.SERVER_FOUNDED, f"tmux server {server.pid}"))
    return changed, tuple(notes)


def without_server(memory: FleetMemory) -> FleetMemory:
    """The server was ended on purpose, or nothing of the fleet is in it: that it goes is no loss."""
    return memory._replace(server_pid=0, server_started=0)
