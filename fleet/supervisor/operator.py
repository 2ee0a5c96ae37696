"""What a verb does to a fleet by itself, with or without a watchdog: start, stop, hold.

Intent is written before anything is touched. While a verb works on agents it holds them, so that the
watchdog neither heals what is being stopped nor stops what is being started; a hold ends with its process.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from fleet import engine
from fleet.core.decision import Result
from fleet.core.desired import Desired, Hold
from fleet.core.loop.loop_case import LoopShown
from fleet.core.loop.phases import doubt, place_at, starts_over
from fleet.core.memory import Run
from fleet.core.model import Fleet, Member
from fleet.core.outline import WATCHDOG
from fleet.core.remember import without_server
from fleet.core.seen import Listing, PaneView, Proc
from fleet.core.words import Outcome
from fleet.host.descriptors import EXTRA, needed
from fleet.host.ending import stop_all
from fleet.host.tmux.pane_rows import anchor
from fleet.host.tmux.server import RECORDED
from fleet.host.tmux.speaker import Lost
from fleet.ports import Allowance, Launch, Server, Target, Unavailable
from fleet.store.house import House
from fleet.store.memories import Records
from fleet.store.position import PhaseBook
from fleet.supervisor.declaration import borrowed_from
from fleet.supervisor.launch import compose_watchdog, server_env
from fleet.supervisor.perform import Performer
from fleet.supervisor.phase import watched_tip
from fleet.supervisor.world import Helpers, World, real_helpers, real_world
from fleet.times.moment import NEVER, later

HOLD_S = 120.0
SOFT_STOP_S = 5.0
WATCHDOG_STOP_S = 5.0
SERVER_STOP_S = 2.0  # it holds nothing any more
TERMINAL_S = 2.0
STARTING_S = 10.0  # a session of the watchdog that is younger is left to take its lock


class Stopped(NamedTuple):
    """What a stop left behind."""

    stopped: tuple[str, ...] = ()  # sessions
    survivors: tuple[Proc, ...] = ()
    left: tuple[str, ...] = ()  # sessions that would not go
    up_again: tuple[str, ...] = ()  # names: another verb wants them up since this stop began


class Shortage(NamedTuple):
    """A fleet that needs more open files than it may have."""

    sessions: int
    need: int
    limit: int
    server: int = 0  # the pid of the tmux server that runs; 0: it would be founded by us


class Ending(StrEnum):
    """What became of a tmux server that does not answer."""

    ENDED = "ended"
    USERS = "users"  # it is the user's own
    SHARED = "shared"  # other processes than ours hang on it
    UNKNOWN = "unknown"  # the process table does not show which process it is


class Forced(NamedTuple):
    """A stop without the help of tmux."""

    stopped: Stopped
    ending: Ending
    server: int = 0  # its pid, if it is known
    guests: tuple[Proc, ...] = ()


class Operator:
    """What one verb does to one fleet beside its deputy: locks, server, watchdog, phase."""

    def __init__(self, fleet: Fleet, world: World | None = None, helpers: Helpers | None = None) -> None:
        self.fleet = fleet
        self.world = world or real_world(fleet)
        self.locks, self.servers = self.world.locks, self.world.servers
        self.server: Server = self.servers.ours()
        self.world.tmux = self.server
        self.helpers = helpers or real_helpers(fleet, self.world)  # for a deputy of the watchdog
        self.house = House(self.world, self.fleet.log_dir)
        self.records = Records(self.house)
        self.performer = Performer(self.world, self.house, self.records)
        self.table = self.world.processes

    # --- the ground ---------------------------------------------------------------------------------

    def make_room(self) -> bool:
        """Our directories, and on record where the tmux server is. True: that is another one now."""
        for path in (self.fleet.log_dir, self.house.state_dir, self.house.logs_dir):
            self.world.disk.make_dir(path)
        for name in ("agents", "runs", "signals", "outbox"):
            self.world.disk.make_dir(self.house.path(name))
        here, recorded = self.servers.socket(), self._recorded_socket()
        if not recorded or (
            os.path.basename(recorded) != os.path.basename(here) and not self.listing().panes
        ):
            self.house.store.write_text(RECORDED, here + "\n")
            self.server = self.world.tmux = self.servers.ours()
            return True
        return False

    def moved_socket(self) -> str:
        """The recorded socket, if the file now names another one while sessions of ours live there."""
        recorded = self._recorded_socket()
        name = os.path.basename(recorded)
        return name if recorded and name != self.fleet.tmux_socket and self.listing().panes else ""

    def _recorded_socket(self) -> str:
        """Where the server really is, as the first `up` found it; empty before that."""
        try:
            return (self.house.store.read_text(RECORDED) or "").strip()
        except OSError:
            return ""

    def earlier(self) -> tuple[str, ...]:
        """Sessions on record here that bear another stamp: session_prefix was changed under them."""
        names = {n.removesuffix(".json") for n in self.world.disk.names(self.house.path("runs"))}
        ours = {s.session for s in self.fleet.members} | {self.fleet.watchdog_session}
        names = {n for n in names if n not in ours and not n.endswith(".prev")}
        return tuple(sorted(names & set(self.listing().foreign))) if names else ()

    def shortage(self, specs: Sequence[Member], listing: Listing) -> Shortage | None:
        """Too few open files for these and all that run; a server of ours is given more if it may have it."""
        there = {p.ref.session for p in listing.panes} | set(listing.foreign)
        wanted = {s.session for s in specs} - there
        if not wanted:
            return None
        sessions = len(there | wanted | {self.fleet.watchdog_session}) + EXTRA - 1
        server = listing.server.pid if listing.server else 0
        if server and not self.server.is_users:
            self.table.widen(server, needed(sessions))
        return short_of(sessions, server, self.table.allowance(server), users=self.server.is_users)

    def strangers(self) -> tuple[str, ...]:
        """Our session names on the user's own server: this fleet runs there already."""
        if self.fleet.tmux_socket == "default":
            return ()
        listing = self.servers.users_listing()
        names = {p.ref.session for p in listing.panes} | set(listing.foreign)
        ours = {s.session for s in self.fleet.members} | {self.fleet.watchdog_session}
        return tuple(sorted(names & ours))

    def listing(self) -> Listing:
        """What runs now. A server that ends while it is asked is asked once more: then it is gone."""
        try:
            return self.server.listing()
        except Lost:
            return self.server.listing()

    def panes(self, there: Listing) -> dict[str, PaneView]:
        """Panes with our stamp, by the session they were made for: a rename by hand moves only the name."""
        found = {p.ref.session: p for p in there.panes}
        runs = {p.ref.run: name for name, p in found.items()}
        for member in self.fleet.members:
            run = self.records.run(member.session) if member.session not in found else None
            if run is not None and run.id in runs:
                found[member.session] = found.pop(runs[run.id])
        return found

    def strays(self, there: Listing) -> dict[str, str]:
        """What bears this project's stamp without being declared: name to session."""
        declared = {s.session for s in self.fleet.members} | {self.fleet.watchdog_session}
        return {self._name(s): s for s in self.panes(there) if s not in declared}

    def owned(self, subjects: Sequence[Member], there: Listing) -> list[Member]:
        """Those that are this fleet's own: a project that was copied has the records of another one."""
        if not borrowed_from(self.fleet):
            return list(subjects)
        panes = self.panes(there)
        return [s for s in subjects if s.session in panes]

    def remains(self) -> dict[str, str]:
        """Runs on record of sessions that are neither declared nor there: their processes may be."""
        declared = {s.session for s in self.fleet.members} | {self.fleet.watchdog_session}
        return {self._name(s): s for s in self._runs_on_record() if s not in declared}

    def _name(self, session: str) -> str:
        return session.removeprefix(self.fleet.session_prefix)

    def end_lost_clients(self) -> tuple[int, ...]:
        """End control clients of ours whose watchdog is gone: a tmux server that ends waits for them."""
        found = self.table.clients(self.fleet.project_id)
        holder = self.locks.holder() if found else None
        lost = [p for p in found if holder is None or p.ppid != holder.pid]
        self.table.signal(lost, signal.SIGKILL)
        return tuple(p.pid for p in lost)

    # --- intent -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lease(self, names: Sequence[str], why: str, wish: Callable[[Desired], Desired]) -> Iterator[None]:
        """Write the wish, keep the watchdog away from these while the verb works, let go in the end."""
        hold = self.hold(why)
        self.house.desired.update(lambda d: wish(d).set(names, hold=hold))
        try:
            yield
        finally:
            self.house.desired.update(lambda d: d.release(hold))
            self.locks.nudge()  # what was done is to be seen now, not at the next look

    def hold(self, why: str) -> Hold:
        """This verb's hold on an agent."""
        return Hold(*self.table.me(), later(self.world.clock.wall(), HOLD_S), why)

    def pardon(self, names: Sequence[str], *, window: bool = True, budget: bool = False) -> Desired:
        """Have tallies and verdicts forgotten; with `window` limit windows too, with `budget` the fleet's."""
        wish = self.house.desired.update(lambda d: d.pardon(names, window=window, budget=budget))
        self.locks.nudge()
        return wish

    def freeze(self, names: Sequence[str]) -> dict[str, str]:
        """Hold these agents' processes where they are; name to why one runs on."""
        said = {}
        panes = self.live(names, self.listing())
        for name in names:
            pane = panes.get(name)
            said[name] = self.table.freeze(pane.ref.pid, pane.ref.run) if pane else "it is not running"
        return {name: why for name, why in said.items() if why}

    def thaw(self, names: Sequence[str]) -> None:
        """Let those of them go that are on record as frozen."""
        entries = self.house.desired.load().entries
        frozen = [n for n in names if n in entries and entries[n].frozen]
        panes = self.panes(self.listing()) if frozen else {}
        for spec in (s for s in self.fleet.members if s.name in frozen):
            pane, run = panes.get(spec.session), self.records.run(spec.session)
            if pane is not None:
                pid = 0 if pane.dead else pane.ref.pid  # whom it left behind stands still as well
                self.table.signal(self.table.members(pid, pane.ref.run), signal.SIGCONT)
            elif run is not None:
                self.table.signal(self.table.members(0, run.id), signal.SIGCONT)

    def live(self, names: Sequence[str], there: Listing) -> dict[str, PaneView]:
        """The panes of those that run, by name."""
        panes = self.panes(there)
        sessions = {s.name: s.session for s in self.fleet.members if s.name in names}
        found = {name: panes[session] for name, session in sessions.items() if session in panes}
        return {name: pane for name, pane in found.items() if not pane.dead}

    # --- starting -----------------------------------------------------------------------------------

    def without_phase(
        self, specs: Sequence[Member], there: Listing, *, bare: bool = False
    ) -> dict[str, Result]:
        """Agents of the loop that no run can be made for now, because it is held or complete: name to why.

        A bare `up` may begin the sequence, or anew.
        """
        loop = [s.name for s in specs if s.is_loop]
        if not loop:
            return {}
        phase, why, over = self._phase(self.panes(there), bare=bare)
        if phase:
            self._open_books(phase)
            return {}
        return dict.fromkeys(loop, Result(Outcome.STALE if over else Outcome.REFUSED, why))

    def foreign(self, specs: Sequence[Member], there: Listing) -> dict[str, str]:
        """Those whose session's name something else has taken: name to what, and whose it is.

        It is only told, so a server that does not answer, or is just ending, keeps no verb from its work.
        """
        with contextlib.suppress(Unavailable):
            return {s.name: self._owner(s.session) for s in specs if s.session in there.foreign}
        return {}

    def _owner(self, session: str) -> str:
        """The program in a session that is not ours, and the fleet that it belongs to, if any."""
        pid, log = self.server.stranger(session)
        who = next((p.name for p in self.table.tree(pid)), "") if pid else ""
        what = f"process {pid} ({who or 'unknown'})" if pid else "a dead pane"
        return f"{what} of the fleet that logs to {os.path.dirname(log)}" if log else what

    def _open_books(self, phase: str) -> None:
        """What a phase uses is counted from before its first agent starts; a watchdog does that itself."""
        if self.fleet.watchdog.log_tokens and self.locks.holder() is None:
            from fleet.supervisor.bookkeeper import Bookkeeper

            wall = self.world.clock.wall()
            Bookkeeper(self.world, self.house).note(
                self.fleet, LoopShown(phase), limited=False, steady=NEVER, wall=wall
            )

    def _phase(self, panes: dict[str, PaneView], *, bare: bool) -> tuple[str, str, bool]:
        """The phase loop agents start in, or why in none, and whether that is because there is no more to do.

        A bare `up` may begin the sequence, or anew.
        """
        loop = self.fleet.loop
        if loop is None:
            return "", "there is no [loop]", True
        book = PhaseBook(self.house.store, self.world.locks.state, loop.state_file)
        entry = book.read(mend=True)
        sessions = {a.session for a in self.fleet.agents if a.is_loop}
        running = any(s in sessions and not p.dead for s, p in panes.items())
        fresh = entry.place is None and entry.index is None and not entry.trouble
        if fresh or (entry.place is not None and starts_over(loop, bare=bare, running=running)):
            tip = watched_tip(self.world.disk, loop)
            place = place_at(loop, 0, self.world.clock.wall(), commit=tip)
            book.set(place)
            return place.id, "", False
        if entry.trouble:
            return "", entry.trouble, False
        if entry.place is None or entry.index is None:
            return "", "the loop's position is in doubt; see `agents.py phase show`", False
        if held := doubt(loop, entry.place, entry.index):
            return "", held, False
        return entry.place.id, "the sequence is complete; see `agents.py phase show`", True

    def start_watchdog(self, argv: Sequence[str]) -> str:
        """The supervisor in a session of its own: "" or why not."""
        if self.locks.holder() is not None:
            return ""
        session = self.fleet.watchdog_session
        with self.world.locks.state():
            pane = self.panes(self.listing()).get(session)
            if pane is not None and not pane.dead and self.world.clock.wall() - pane.created < STARTING_S:
                return ""  # another `up` was faster, and it has not taken its lock yet
            env = server_env(self.fleet, self.world.host.environ)
            run = self.world.draw()[:16]
            inherited = frozenset(env) | self.server.inherited().names
            script = compose_watchdog(self.fleet, run=run, argv=argv, held=env, server_names=inherited)
            path = self.house.path(f"launch-{session}.sh")
            self.world.disk.write(path, script.encode("utf-8", "surrogateescape"), sync=False)
            self.records.save_run(Run(run, session, self.world.clock.wall(), why="up"))
            if pane is not None:
                self.server.remove([pane.ref])
            said = self.server.create([Launch(session, path, run, f"{session}.log", env)])[session]
        return "" if said.outcome in {Outcome.DONE, Outcome.EXISTS} else said.why

    # --- stopping -----------------------------------------------------------------------------------

    def stop_watchdog(self) -> bool:
        """End the supervisor and its session; True when there was one."""
        pane = self.panes(self.listing()).get(self.fleet.watchdog_session)
        held = self.end_watchdog()
        if pane is not None:
            self._stop_all([(0 if pane.dead else pane.ref.pid, pane.ref.run)])
            self.server.remove([pane.ref])
        return held or pane is not None

    def end_watchdog(self) -> bool:
        """End the supervisor's process by its verified identity; True when there was one."""
        holder = self.locks.holder()
        if holder is not None and holder.pid != self.table.me()[0]:
            self._end(Proc(holder.pid, holder.start, 0, 0, WATCHDOG), WATCHDOG_STOP_S)
        return holder is not None

    def outlasting(self, procs: Sequence[Proc]) -> tuple[Proc, ...]:
        """Those who outlive their terminal too: sudo and its like leave when it is closed."""
        clock = self.world.clock
        deadline = clock.mono() + TERMINAL_S
        while (left := tuple(p for p in procs if self.table.alive(p))) and clock.mono() < deadline:
            clock.sleep(0.02)
        return left

    def force(self) -> Forced:
        """Stop everything without tmux: the processes by their run ids, then a server that is only ours."""
        runs = {name: run.id for name, run in self._runs_on_record().items()}
        targets = [(0, run) for run in (*runs.values(), anchor(self.fleet.project_id))]
        found = self.table.sweep(targets)
        dog = self.fleet.watchdog_session
        there = tuple(sorted(name for name, run in runs.items() if found[0, run] and name != dog))
        survivors = self._stop_all(targets)
        server = self.table.listener(self.server.path)
        others = self.table.guests(server, {run for _, run in targets}) if server is not None else ()
        ending = self._end_server(server, others)
        gone, left = (there, ()) if ending is Ending.ENDED else ((), there)
        stopped = Stopped(gone, self.outlasting(survivors), left)
        return Forced(stopped, ending, server.pid if server else 0, others)

    def _end_server(self, server: Proc | None, others: Sequence[Proc]) -> Ending:
        """End a server that does not answer, if it is ours alone; what became of it."""
        if self.server.is_users:
            return Ending.USERS
        if server is None:
            return Ending.UNKNOWN
        if others:
            return Ending.SHARED
        return Ending.ENDED if self._end(server, SERVER_STOP_S) else Ending.UNKNOWN

    def _runs_on_record(self) -> dict[str, Run]:
        """By session."""
        if borrowed_from(self.fleet):
            return {}
        names = self.world.disk.names(self.house.path("runs"))
        sessions = [n.removesuffix(".json") for n in names if n.endswith(".json")]
        return {s: run for s in sessions if (run := self.records.run(s)) is not None}

    def end_server(self) -> None:
        """A private server that holds nothing any more ends too."""
        with contextlib.suppress(Unavailable):
            self.server.retire()

    def forget_server(self) -> None:
        """Nothing of the fleet is in its server any more: the next watchdog does not report it as lost."""
        memory = self.records.fleet()
        if memory.server_pid:
            self.records.save_fleet(without_server(memory))

    def _stop_all(self, targets: Sequence[Target]) -> tuple[Proc, ...]:
        return stop_all(self.table, self.world.clock, targets, grace=SOFT_STOP_S)

    def _end(self, proc: Proc, patience: float) -> bool:
        """Ask, wait, force: only ever this very process. True when it is gone."""
        clock, alive = self.world.clock, self.table.alive
        for signum in (signal.SIGTERM, signal.SIGKILL):
            deadline = clock.mono() + patience
            self.table.signal([proc], signum)
            while alive(proc) and clock.mono() < deadline:
                clock.sleep(0.02)
            if not alive(proc):
                return True
        return False


def short_of(sessions: int, server: int, found: Allowance, *, users: bool) -> Shortage | None:
    """Compare what so many sessions need with what the server, which may run already, can have.

    One of ours is given all it may have; the user's own is not ours to change.
    """
    need = needed(sessions)
    limit = found.soft if users and server else found.hard
    return Shortage(sessions, need, limit, server) if limit < need else None


def watchdog_argv(fleet: Fleet) -> list[str]:
    """How the supervisor is started: this Python, this engine, this file."""
    return engine.command(WATCHDOG, "--config", fleet.config_path)
