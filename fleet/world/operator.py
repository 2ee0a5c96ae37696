"""What a verb does to a fleet by itself, with or without a watchdog: start, stop, hold.

Intent is written before anything is touched. While a verb works on agents it holds them, so that the
watchdog neither heals what is being stopped nor stops what is being started; a hold ends with its process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleet.core.case import LoopState
from fleet.core.desired import Hold, Want
from fleet.core.memory import Run
from fleet.core.model import WATCHDOG, AgentSpec, Fleet, ServiceSpec
from fleet.core.rules.phases import place_at, starts_over
from fleet.core.seen import Listing, PaneView, Proc
from fleet.journal.locks import start_of, watchdog_holder
from fleet.world.launch import compose_watchdog, server_env
from fleet.world.perform import Done, Order, Performer
from fleet.world.phasebook import PhaseBook
from fleet.world.ports import Launch, Unavailable
from fleet.world.processes import ProcTable
from fleet.world.real import real_world
from fleet.world.records import Records
from fleet.world.server import recorded_socket, server_of
from fleet.world.terminal import RECORDED
from fleet.world.tmux import TmuxServer, resolve_socket
from fleet.world.world import House

HOLD_S = 120.0
SOFT_STOP_S = 5.0
WATCHDOG_STOP_S = 5.0
TERMINAL_S = 2.0
STARTING_S = 10.0  # a session of the watchdog that is younger is left to take its lock
Spec = AgentSpec | ServiceSpec


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop left behind."""

    stopped: tuple[str, ...] = ()  # sessions
    survivors: tuple[Proc, ...] = ()
    left: tuple[str, ...] = ()  # sessions that would not go
    blocked: frozenset[str] = frozenset()  # sessions whose old processes live on: no start there


class Operator:
    """One verb's hands on one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.server = server_of(self.fleet)
        self.world = real_world(self.fleet, self.server)
        self.house = House(self.world, self.fleet.log_dir)
        self.records = Records(self.world, self.house)
        self.performer = Performer(self.world, self.house, self.records)
        self.table = ProcTable()

    # --- the ground ---------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Our directories, and on record where the tmux server is."""
        for path in (self.fleet.log_dir, self.house.state_dir, self.house.logs_dir):
            self.world.disk.make_dir(path)
        for name in ("agents", "runs", "signals"):
            self.world.disk.make_dir(self.house.path(name))
        here = resolve_socket(self.fleet.tmux_socket)
        recorded = recorded_socket(self.fleet)
        if not recorded or (
            os.path.basename(recorded) != os.path.basename(here) and not self.listing().panes
        ):
            self.house.store.write_text(RECORDED, here + "\n")
            self.server = server_of(self.fleet)
            self.world.tmux = self.server

    def moved_socket(self) -> str:
        """The recorded socket, if the file now names another one while sessions of ours live there."""
        recorded = recorded_socket(self.fleet)
        name = os.path.basename(recorded)
        return name if recorded and name != self.fleet.tmux_socket and self.listing().panes else ""

    def earlier(self) -> tuple[str, ...]:
        """Sessions on record here that bear another stamp: session_prefix was changed under them."""
        names = {n.removesuffix(".json") for n in self.world.disk.names(self.house.path("runs"))}
        ours = {s.session for s in self.fleet.members} | {self.fleet.watchdog_session}
        names = {n for n in names if n not in ours and not n.endswith(".prev")}
        return tuple(sorted(names & set(self.listing().foreign))) if names else ()

    def strangers(self) -> tuple[str, ...]:
        """Our session names on the user's own server: somebody runs this fleet there already."""
        if self.fleet.tmux_socket == "default":
            return ()
        theirs = TmuxServer("default", self.house.state_dir, self.fleet.project_id, self.fleet.log_dir)
        try:
            listing = theirs.listing()
        except Unavailable:
            return ()
        names = {p.ref.session for p in listing.panes} | set(listing.foreign)
        ours = {s.session for s in self.fleet.members} | {self.fleet.watchdog_session}
        return tuple(sorted(names & ours))

    def listing(self) -> Listing:
        """What runs now."""
        return self.server.listing()

    def panes(self) -> dict[str, PaneView]:
        """Panes with our stamp, by the session they were made for: a rename by hand moves only the name."""
        found = {p.ref.session: p for p in self.listing().panes}
        runs = {p.ref.run: name for name, p in found.items()}
        for member in self.fleet.members:
            run = self.records.run(member.session) if member.session not in found else None
            if run is not None and run.id in runs:
                found[member.session] = found.pop(runs[run.id])
        return found

    # --- intent -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def holding(self, names: Sequence[str], why: str, want: Want | None) -> Iterator[None]:
        """Write the intent, keep the watchdog's hands off while we work, let go in the end."""
        me = os.getpid()
        hold = Hold(me, start_of(me), self.world.clock.wall() + HOLD_S, why)
        changes: dict[str, object] = {"hold": hold}
        if want is not None:
            changes["want"] = want
        if want is Want.UP:
            self.thaw(names)
            changes["paused"] = changes["frozen"] = False
        self.house.desired.update(lambda d: d.set(names, **changes))
        try:
            yield
        finally:
            self.house.desired.update(lambda d: d.set(names, hold=None))

    def freeze(self, names: Sequence[str]) -> dict[str, str]:
        """Hold these agents' processes where they are; name to why one runs on."""
        said = {}
        panes = self.live(names)
        for name in names:
            pane = panes.get(name)
            said[name] = self.table.freeze(pane.ref.pid, pane.ref.run) if pane else "it is not running"
        return {name: why for name, why in said.items() if why}

    def thaw(self, names: Sequence[str]) -> None:
        """Let those of them go that are on record as frozen."""
        entries = self.house.desired.load().entries
        frozen = [n for n in names if n in entries and entries[n].frozen]
        for pane in self.live(frozen).values() if frozen else ():
            self.table.signal(self.table.members(pane.ref.pid, pane.ref.run), signal.SIGCONT)

    def live(self, names: Sequence[str]) -> dict[str, PaneView]:
        """The panes of those that run, by name."""
        panes = self.panes()
        sessions = {s.name: s.session for s in self.fleet.members if s.name in names}
        found = {name: panes[session] for name, session in sessions.items() if session in panes}
        return {name: pane for name, pane in found.items() if not pane.dead}

    # --- starting -----------------------------------------------------------------------------------

    def start(self, specs: Sequence[Spec], cause: str, *, bare: bool = False) -> dict[str, Done]:
        """Start what does not run; what runs is left alone and reported as stale."""
        panes = self.panes()
        phase, why_none, over = self._phase(panes, bare=bare)
        orders: list[Order] = []
        results: dict[str, Done] = {}
        dead = [p for s in specs if (p := panes.get(s.session)) is not None and p.dead]
        gone = [self.records.run(s.session) for s in specs if s.session not in panes]
        self._sweep([*(p.ref.run for p in dead), *(run.id for run in gone if run is not None)])
        for spec in specs:
            pane = panes.get(spec.session)
            if pane is not None and not pane.dead:
                results[spec.name] = Done(ok=False, why="exists", stale=True)
                continue
            loop = isinstance(spec, AgentSpec) and spec.kind == "loop"
            if loop and not phase:
                results[spec.name] = Done(ok=False, why=why_none, stale=over)
                continue
            orders.append(Order(spec, cause, pane.ref if pane else None, phase=phase if loop else ""))
        if phase and any(order.phase for order in orders):
            self._open_books(phase)
        made = self.performer.start(self.fleet, orders, lambda _name: True)
        return results | self._foreigners_named(made)

    def _foreigners_named(self, made: dict[str, Done]) -> dict[str, Done]:
        """A name that was taken under our hands is another verb's doing, or a stranger's session."""
        if not any(done.why == "exists" for done in made.values()):
            return made
        ours = self.live(list(made))
        foreign = Done(ok=False, why="a session of this name is not ours; it is left alone")
        return {n: foreign if done.why == "exists" and n not in ours else done for n, done in made.items()}

    def _open_books(self, phase: str) -> None:
        """What a phase uses is counted from before its first agent starts; a watchdog does that itself."""
        if self.fleet.watchdog.log_tokens and watchdog_holder(self.house.state_dir) is None:
            from fleet.world.ledger import Ledger

            wall = self.world.clock.wall()
            Ledger(self.world, self.house).note(
                self.fleet, LoopState(phase), limited=False, steady=0.0, wall=wall
            )

    def _phase(self, panes: dict[str, PaneView], *, bare: bool) -> tuple[str, str, bool]:
        """The phase loop agents start in, or why in none, and whether that is because there is no more to do.

        A bare `up` may begin the sequence, or anew.
        """
        loop = self.fleet.loop
        if loop is None:
            return "", "there is no [loop]", True
        book = PhaseBook(self.house.store, self.world.lock, loop.state_file)
        entry = book.read(mend=True)
        sessions = {a.session for a in self.fleet.agents if a.kind == "loop"}
        running = any(s in sessions and not p.dead for s, p in panes.items())
        fresh = entry.place is None and entry.index is None and not entry.trouble
        if fresh or (entry.place is not None and starts_over(loop, bare=bare, running=running)):
            from fleet.world.phasefiles import watched_tip  # only a first start needs to read git

            tip = watched_tip(self.world.disk, loop)
            place = place_at(loop, 0, self.world.clock.wall(), commit=tip)
            book.set(place)
            return place.id, "", False
        if entry.trouble:
            return "", entry.trouble, False
        if entry.place is None or entry.index != entry.place.index:
            return "", "the loop's position is in doubt; see `agents.py phase show`", False
        return entry.place.id, "the sequence is complete; see `agents.py phase show`", True

    def start_watchdog(self, argv: Sequence[str]) -> str:
        """The supervisor in a session of its own: "" or why not."""
        if watchdog_holder(self.house.state_dir) is not None:
            return ""
        session = self.fleet.watchdog_session
        with self.world.lock():
            pane = self.panes().get(session)
            if pane is not None and not pane.dead and self.world.clock.wall() - pane.created < STARTING_S:
                return ""  # somebody else's `up` was faster, and it has not taken its lock yet
            env = server_env(self.fleet, self.world.environ)
            run = self.world.draw()[:16]
            inherited = frozenset(env) | self.server.environment_names()
            script = compose_watchdog(self.fleet, run=run, argv=argv, held=env, server_names=inherited)
            path = self.house.path(f"launch-{session}.sh")
            self.world.disk.write(path, script.encode("utf-8", "surrogateescape"), sync=False)
            self.records.save_run(Run(run, session, self.world.clock.wall(), why="up"))
            if pane is not None:
                self.server.remove([pane.ref])
            said = self.server.create([Launch(session, path, run, f"{session}.log", env)])[session]
        return "" if said == "exists" else said

    # --- stopping -----------------------------------------------------------------------------------

    def stop_watchdog(self) -> bool:
        """End the supervisor by its verified identity; True when there was one."""
        holder = watchdog_holder(self.house.state_dir)
        pane = self.panes().get(self.fleet.watchdog_session)
        if holder is not None and holder.pid != os.getpid():
            _end(holder.pid, holder.start)
        if pane is not None:
            self.stop([pane])
        return holder is not None or pane is not None

    def stop(self, panes: Sequence[PaneView], *, runs: Sequence[str] = ()) -> Stopped:
        """Stop these panes' whole process sets, then take the sessions away, then look again."""
        targets = [(p.ref.pid if not p.dead else 0, p.ref.run) for p in panes] + [(0, run) for run in runs]
        survivors = self.table.stop_all(targets, grace=SOFT_STOP_S) if targets else ()
        self.server.remove([p.ref for p in panes])
        names = {p.ref.session for p in panes}
        left = tuple(sorted(p.ref.session for p in self.listing().panes if p.ref.session in names))
        survivors = self._outlasting(survivors)
        held = self.table.sweep(targets) if survivors else {}
        blocked = {p.ref.session for p, target in zip(panes, targets, strict=False) if held.get(target)}
        return Stopped(tuple(sorted(names - set(left))), survivors, left, frozenset(blocked))

    def _outlasting(self, procs: Sequence[Proc]) -> tuple[Proc, ...]:
        """Those who outlive their terminal too: sudo and its like leave when it is closed."""
        deadline = time.monotonic() + TERMINAL_S
        while (left := tuple(p for p in procs if self.table.alive(p))) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left

    def known_runs(self) -> tuple[str, ...]:
        """Run ids on record, also those whose session is gone: their processes may not be."""
        names = self.world.disk.names(self.house.path("runs"))
        runs = (self.records.run(n.removesuffix(".json")) for n in names if n.endswith(".json"))
        return tuple(r.id for r in runs if r is not None)

    def end_server(self) -> None:
        """A private server that holds nothing any more ends too."""
        with contextlib.suppress(Unavailable):
            self.server.retire()

    def _sweep(self, runs: Sequence[str]) -> None:
        """What is over may have left processes behind, all the more when its server was lost."""
        if runs:
            self.table.stop_all([(0, run) for run in runs], grace=SOFT_STOP_S)


def _end(pid: int, start: int) -> None:
    """Ask, wait, force: only ever the process that has this start time."""
    for signum, patience in ((signal.SIGTERM, WATCHDOG_STOP_S), (signal.SIGKILL, WATCHDOG_STOP_S)):
        deadline = time.monotonic() + patience
        if start_of(pid) == start:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        while start_of(pid) == start and time.monotonic() < deadline:
            time.sleep(0.02)
        if start_of(pid) != start:
            return


def watchdog_argv(fleet: Fleet, engine: str) -> list[str]:
    """How the supervisor is started: this Python, this engine, this file."""
    return [sys.executable, os.path.join(engine, "agents.py"), WATCHDOG, "--config", fleet.config_path]
