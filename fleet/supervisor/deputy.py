"""A supervisor on a verb's behalf: the same tick, for some members, in the verb's process and environment.

An observer only glances. A deputy starts and stops: it has a lease on its subjects (`Operator.lease`), so the
watchdog leaves them alone meanwhile and reads their memory again afterwards. So there is one way to start and
one to stop, with a watchdog, without one, and beside one that hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from fleet.core.case import AgentSeen
from fleet.core.decision import Result
from fleet.core.desired import Desired, Want
from fleet.core.model import Fleet, Member
from fleet.core.seen import Listing, PaneView, Proc
from fleet.core.words import Detail, Outcome, StopStage
from fleet.ports import Target, Unavailable
from fleet.supervisor.look import Look
from fleet.supervisor.operator import Operator, Stopped
from fleet.supervisor.reload import Settled
from fleet.supervisor.tick import Supervisor
from fleet.supervisor.world import Helpers, World, real_world

STOP_S = 10.0  # asking, forcing and hanging up are over by then
START_S = 20.0  # with the end of an old run before it
BLIND_S = 5.0  # how long tmux may not answer
POLL_S = 0.05
LEADER_S, LEADER_POLL_S = 0.25, 0.01
EMPTYING = {StopStage.ASKED, StopStage.FORCED}  # its processes are about to end
# No run will be made now, however long a deputy waits.
REFUSALS = {Detail.HELD: Outcome.REFUSED, Detail.DONE: Outcome.STALE, Detail.FATAL: Outcome.IMPOSSIBLE}

Wish = Callable[[Desired], Desired]


def observer(fleet: Fleet, names: Collection[str] | None = None, world: World | None = None) -> Supervisor:
    """Looks and decides, writes and does nothing."""
    made = Supervisor(world or real_world(fleet), Settled(_only(fleet, names)))
    return _opened(made, repair=False)


def stand_in(fleet: Fleet, names: Collection[str], world: World, helpers: Helpers) -> Supervisor:
    """The watchdog for these agents, where none runs; the caller holds the watchdog's lock."""
    made = _opened(Supervisor(world, Settled(_only(fleet, names)), helpers), repair=True)
    made.begin()
    return made


def stray(name: str, session: str) -> Member:
    """What bears this project's stamp and is not in the file, as a subject."""
    return Member(name, session, "service", "", "/", "none", enabled=False)


class Deputy:
    """Starts and stops its subjects. The caller has a lease on them."""

    def __init__(
        self,
        operator: Operator,
        subjects: Sequence[Member],
        there: Listing,
        unwritten: Wish | None = None,
    ) -> None:
        """`there`: what the verb found, for the first look. Acts expect what was seen, so it may be old.

        `unwritten`: the wish that the disk did not take. Then nothing that is done is put on record.
        """
        self._operator = operator
        self._subjects = subjects
        self._there = there
        self._unwritten = unwritten
        fleet = replace(operator.fleet, members=tuple(subjects))
        self._supervisor = _opened(
            Supervisor(operator.world, Settled(fleet), lease=operator.table.me(), unwritten=unwritten),
            repair=True,
        )
        self._supervisor.senses.offered = (there, operator.house.desired.load().generation)
        if unwritten is None:
            self._supervisor.begin_work()

    def bring_up(self) -> dict[str, Result]:
        """Start what was called for, in place of older runs; what became of each, by name."""
        results: dict[str, Result] = {}

        def over(look: Look) -> bool:
            waiting = (m for m in self._subjects if m.name not in results)
            found = {m.name: done for m in waiting if (done := self._outcome(look, m)) is not None}
            results.update(found)
            return len(results) == len(self._subjects)

        if self._subjects:
            self._follow(over, START_S)
            self._supervisor.finish()
        for member in self._subjects:
            results.setdefault(member.name, Result(Outcome.REFUSED, self._why(member)))
        return results

    def take_down(self) -> Stopped:
        """Stop them wholly: processes, then sessions. What another verb wants up by now is left to it."""
        if not self._subjects:
            return Stopped()
        operator, panes = self._operator, self._operator.panes(self._there)
        targets = [t for s in self._subjects if (t := self._target(panes.get(s.session), s)) is not None]
        sessions = {s.session for s in self._subjects if s.session in panes}
        others = operator.table.beyond(targets)  # not ours to end; some leave with their terminal
        last = self._follow(self._all_gone, STOP_S)
        again: dict[str, str] = {}  # name to session
        if self._unwritten is None:
            self._supervisor.finish()
            desired = operator.house.desired.load()
            again = {s.name: s.session for s in self._subjects if desired.wants_up(s.name)}
        sessions -= set(again.values())
        left = frozenset(p.ref.session for p in last.panes) & sessions
        ours = {p for procs in operator.table.sweep(targets).values() for p in procs}
        survivors: tuple[Proc, ...] = (*sorted(ours, key=lambda p: p.pid), *operator.outlasting(others))
        return Stopped(tuple(sorted(sessions - left)), survivors, tuple(sorted(left)), tuple(again))

    def survivors(self) -> tuple[Proc, ...]:
        """Processes of older runs that no signal has ended."""
        stops = [memory.stopping for memory in self._supervisor.mind.memories.values()]
        found = self._operator.table.sweep([(s.pid, s.run) for s in stops if s is not None])
        return tuple(proc for procs in found.values() for proc in procs)

    # --- following ----------------------------------------------------------------------------------

    def _follow(self, over: Callable[[Look], bool], patience: float) -> Look:
        """Tick until it is over or the time is up; the last look at which tmux answered."""
        clock, senses = self._operator.world.clock, self._supervisor.senses
        seen = begun = clock.mono()
        last: Look | None = None
        while True:
            delay = self._supervisor.work()
            look, now = self._supervisor.last_look, clock.mono()
            assert look is not None
            if not look.blind:
                seen, last = now, look
                if over(look):
                    return look
                if look.listing is not None and all(map(self._is_ending, self._subjects)):
                    senses.offered = (look.listing, look.generation)
            elif now - seen >= BLIND_S:
                raise Unavailable(look.blind)
            if now - begun >= patience:
                if last is None:
                    raise Unavailable(look.blind)
                return last
            self._rest(min(delay, POLL_S))

    def _is_ending(self, subject: Member) -> bool:
        """Was it asked to end? Then the next look counts its processes, and has no question to tmux."""
        stop = self._supervisor.mind.memories[subject.name].stopping
        return stop is not None and stop.stage in EMPTYING

    def _rest(self, seconds: float) -> None:
        """Until the next look. While a leader that was asked to end is there, only its end is waited for."""
        clock, start_of = self._operator.world.clock, self._operator.table.start_of
        stops = [memory.stopping for memory in self._supervisor.mind.memories.values()]
        leaders = [stop.pid for stop in stops if stop is not None and stop.stage in EMPTYING]
        until = clock.mono() + LEADER_S
        while any(map(start_of, leaders)) and clock.mono() < until:
            clock.sleep(LEADER_POLL_S)
            seconds = 0.0
        clock.sleep(seconds)

    def _outcome(self, look: Look, member: Member) -> Result | None:
        """What became of a start; None while it is not known."""
        supervisor, seen = self._supervisor, look.seen[member.name]
        if (done := supervisor.executor.started.get(member.name)) is not None:
            return done
        if seen.foreign:
            return Result(Outcome.REFUSED, "a session of this name is not ours; it is left alone")
        memory, shown = supervisor.mind.memories[member.name], supervisor.mind.decided[member.name].shown
        if shown.detail in REFUSALS and memory.stopping is None:
            return Result(REFUSALS[shown.detail], shown.reason)
        alive = seen.pane is not None and not seen.pane.dead
        called = memory.run is not None and memory.run.made_for.call < seen.wish.run
        return Result(Outcome.EXISTS) if alive and memory.stopping is None and not called else None

    def _why(self, member: Member) -> str:
        decided = self._supervisor.mind.decided.get(member.name)
        return f"its old run is not over: {decided.shown.reason}" if decided else "it was not seen"

    def _all_gone(self, look: Look) -> bool:
        return all(self._is_gone(look.seen[s.name], s) for s in self._subjects)

    def _is_gone(self, seen: AgentSeen, subject: Member) -> bool:
        """Is nothing left of it? One that is wanted up again since is not this deputy's any more."""
        if seen.wish.want is Want.UP:
            return True
        stopping = self._supervisor.mind.memories[subject.name].stopping
        return seen.pane is None and not seen.survivors and stopping is None

    def _target(self, pane: PaneView | None, subject: Member) -> Target | None:
        """Whose processes are to end."""
        if pane is not None:
            return 0 if pane.dead else pane.ref.pid, pane.ref.run
        run = self._operator.records.run(subject.session)
        return (0, run.id) if run is not None else None


def _only(fleet: Fleet, names: Collection[str] | None) -> Fleet:
    """The same fleet with just these members."""
    if names is None:
        return fleet
    return replace(fleet, members=tuple(m for m in fleet.members if m.name in names))


def _opened(made: Supervisor, *, repair: bool) -> Supervisor:
    why = made.open(repair=repair)
    assert not why, why
    return made
