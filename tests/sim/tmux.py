"""A tmux server as it is, and the Tmux port as the watchdog may see it.

Modelled because they bite: ids that begin again after a restart, a stopped server that hangs every client
and carries out their commands later, answers that come only in part, deaths whose status stays empty until
the server is nudged, copy-mode that swallows keys, names that are taken, sessions that belong to somebody
else, and people who rename, kill and type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Protocol

from fleet.core.decision import Result
from fleet.core.seen import Listing, PaneRef, PaneView, ServerId
from fleet.core.words import Outcome
from fleet.host.tmux.speaker import Silent
from fleet.ports import Inherited, Launch, Unavailable
from tests.sim.clock import SimClock
from tests.sim.processes import ProcessTable, SimProc

CLIENT_TIMEOUT = 5.0
LOST_REAPS = 0.14  # share of deaths that tmux 3.3a leaves without a status


class Program(Protocol):
    """What runs in a pane."""

    def screen(self) -> str: ...

    def cursor(self) -> tuple[int, int]: ...

    def activity(self) -> float: ...

    def paste(self, text: str) -> None: ...

    def key(self, name: str) -> None: ...


class SimSession:
    """One session with its one pane."""

    __slots__ = (
        "activity",
        "created",
        "dead",
        "exit_code",
        "exit_signal",
        "given",
        "in_mode",
        "name",
        "pane",
        "pid",
        "proc",
        "program",
        "project",
        "reaped",
        "run",
        "shown",
        "typed_at",
    )

    def __init__(self, name: str, pane: str, proc: SimProc, created: float) -> None:
        self.name = name
        self.pane = pane
        self.proc = proc
        self.pid = proc.pid
        self.run = ""
        self.project = ""  # empty: not made by us
        self.given: Mapping[str, str] = {}  # variables
        self.created = created
        self.activity = created
        self.dead = False
        self.reaped = True
        self.exit_code: int | None = None
        self.exit_signal: int | None = None
        self.in_mode = False
        self.typed_at = 0.0
        self.program: Program | None = None
        self.shown: tuple[object, PaneView] | None = None  # the row as last listed


class SimServer:
    """A running server: a process, its sessions, and whether it answers."""

    def __init__(self, ident: ServerId, proc: SimProc) -> None:
        self.ident = ident
        self.proc = proc
        self.sessions: dict[str, SimSession] = {}
        self.panes = 0
        self.hung = False
        self.waiting: list[Callable[[], None]] = []  # commands whose clients gave up


class TmuxMachine:
    """What is true of tmux on this machine, on our socket."""

    def __init__(
        self,
        clock: SimClock,
        rng: Random,
        table: ProcessTable,
        program: Callable[[SimSession, Launch], Program],
        on_change: Callable[[str], None],
    ) -> None:
        self.clock = clock
        self.table = table
        self._rng = rng
        self._program = program
        self._on_change = on_change
        self.server: SimServer | None = None
        self.late = False  # a command whose client gave up is carried out right now

    @property
    def hung(self) -> bool:
        """Does nobody get an answer?"""
        return self.server is not None and self.server.hung

    def found(self) -> SimServer:
        """Start a server if there is none; ids begin at zero again."""
        if self.server is None:
            proc = self.table.spawn("tmux: server", session_leader=True)
            self.server = SimServer(ServerId(proc.pid, int(self.clock.wall())), proc)
            proc.on_exit = lambda _code, _signum: self._server_ended(proc)
        return self.server

    def open(self, name: str, comm: str) -> SimSession:
        """A new session with one process in it."""
        server = self.found()
        proc = self.table.spawn(comm, server.proc, session_leader=True)
        proc.sid, proc.run, proc.owner = proc.pid, "", "user"
        session = SimSession(name, f"%{server.panes}", proc, self.clock.wall())
        server.panes += 1
        server.sessions[name] = session
        proc.on_exit = lambda code, signum: self._pane_died(session, code, signum)
        return session

    def launch(self, launch: Launch, project: str) -> Result:
        """What create does for one session."""
        if launch.session in self.found().sessions:
            return Result(Outcome.EXISTS)
        session = self.open(launch.session, "sh")
        session.run, session.project = launch.run, project
        session.given = {**launch.env, "AO_RUN_ID": launch.run}
        session.proc.run, session.proc.owner = launch.run, "ours"
        session.program = self._program(session, launch)
        return Result(Outcome.DONE)

    def _pane_died(self, session: SimSession, code: int | None, signum: int | None) -> None:
        session.dead = True
        session.exit_code, session.exit_signal = code, signum
        session.reaped = self._rng.random() >= LOST_REAPS
        session.activity = self.clock.wall()
        self._on_change(session.name)

    def close(self, session: SimSession) -> None:
        """The session goes; its terminal hangs up."""
        server = self.server
        if server is None or server.sessions.get(session.name) is not session:
            return
        del server.sessions[session.name]
        session.proc.on_exit = None
        self.table.hang_up(session.pid)
        self._on_change(session.name)

    def rename(self, session: SimSession, name: str) -> None:
        """What a user may do to any session."""
        if self.server is not None and name not in self.server.sessions:
            del self.server.sessions[session.name]
            session.name = name
            self.server.sessions[name] = session

    def _server_ended(self, proc: SimProc) -> None:
        if self.server is not None and self.server.proc is proc:
            self.kill_server()

    def kill_server(self) -> None:
        """Every terminal hangs up at once; whoever shrugs that off lives on."""
        server, self.server = self.server, None
        if server is None:
            return
        server.waiting.clear()
        self.table.end(server.proc, signum=9)
        for session in server.sessions.values():
            session.proc.on_exit = None
            self.table.hang_up(session.pid)
        self._on_change("")

    def hang(self) -> None:
        """SIGSTOP: clients wait for ever."""
        if self.server is not None:
            self.server.hung = self.server.proc.stopped = True

    def unhang(self) -> None:
        """SIGCONT: what clients had asked for happens now, though they are long gone."""
        if self.server is not None and self.server.hung:
            self.server.hung = self.server.proc.stopped = False
            waiting, self.server.waiting = self.server.waiting, []
            self.late = True
            for command in waiting:
                command()
            self.late = False


class SimTmux:
    """The Tmux port over the machine. `before` may crash the caller; `cut_short` spoils an answer."""

    def __init__(
        self,
        machine: TmuxMachine,
        project: str,
        before: Callable[[str], None],
        on_act: Callable[[str, SimSession | None, str], None],
        cut_short: Callable[[], bool] = lambda: False,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self._machine = machine
        self._cut_short = cut_short
        self._project = project
        self._before = before
        self._wait = wait or machine.clock.sleep
        self._given: dict[str, Mapping[str, str]] = {}  # by session, as last asked for
        self._on_act = on_act  # (verb, session as it truly is or None, detail): told before it happens

    def listing(self) -> Listing:
        """Every pane we made, and the names of what we did not."""
        self._ask("tmux.listing")
        self._on_act("listing", None, "")
        server = self._machine.server
        if server is None:
            return Listing(None)
        panes, foreign = [], []
        for session in server.sessions.values():
            if session.project == self._project:
                panes.append(self._view(server.ident, session))
            else:
                foreign.append(session.name)
        return Listing(server.ident, tuple(panes), tuple(foreign))

    def capture(self, refs: Sequence[PaneRef], *, back: int = 0) -> dict[str, str]:
        """The visible text of those that are still there."""
        self._ask("tmux.capture")
        server = self._machine.server
        if server is None:
            return {}
        there = {s.pane: s for s in server.sessions.values()}
        return {
            ref.session: program.screen()
            for ref in refs
            if ref.server == server.ident and (program := getattr(there.get(ref.pane), "program", None))
        }

    def create(self, launches: Sequence[Launch]) -> dict[str, Result]:
        """Make them; a taken name says so."""
        self._ask("tmux.create", lambda: self._create(launches))
        return self._create(launches)

    def remove(self, refs: Sequence[PaneRef], *, keeping: bool = False) -> dict[str, str]:
        """End them, each only if it still is what we saw."""
        self._ask("tmux.remove", lambda: self._remove(refs))
        if keeping:
            self._note([ref.session for ref in refs])
        return self._remove(refs)

    def _note(self, sessions: Sequence[str]) -> None:
        there = self._machine.server.sessions if self._machine.server is not None else {}
        self._given.update((s, there[s].given) for s in sessions if s in there)

    def paste(self, ref: PaneRef, text: str) -> str:
        """Type it, if somebody is there to read it."""
        self._ask("tmux.paste", lambda: self._type(ref, text, ()))
        return self._type(ref, text, ())

    def press(self, ref: PaneRef, keys: Sequence[str]) -> str:
        """Press them, under the same guard."""
        self._ask("tmux.press", lambda: self._type(ref, "", keys))
        return self._type(ref, "", keys)

    def log_again(self, sessions: Sequence[str]) -> None:
        """Nobody logs here."""

    def inherited(self, sessions: Sequence[str] = ()) -> Inherited:
        """A server of ours was founded with nothing that a pane may not have."""
        self._note(sessions)
        return Inherited(frozenset(), {s: self._given[s] for s in sessions if s in self._given})

    def reap(self) -> None:
        """Statuses that were missed are filled in."""
        self._ask("tmux.reap")
        if self._machine.server is not None:
            for session in self._machine.server.sessions.values():
                session.reaped = True

    def close(self) -> None:
        """Nothing is held."""

    path = "/tmp/tmux-0/ao-sim"
    is_users = False

    def stranger(self, session: str) -> tuple[int, str]:
        """No other fleet is on this server."""
        self._ask("tmux.stranger")
        found = self._machine.server.sessions.get(session) if self._machine.server is not None else None
        return (found.pid, "") if found is not None and not found.dead else (0, "")

    def retire(self) -> None:
        """A server without sessions ends."""
        self._ask("tmux.retire")
        server = self._machine.server
        if server is not None and not server.sessions:
            self._on_act("retire", None, "")
            self._machine.kill_server()

    def _ask(self, site: str, late: Callable[[], object] | None = None) -> None:
        self._before(site)
        server = self._machine.server
        if server is not None and server.hung:
            if late is not None:
                server.waiting.append(lambda: late() and None)
            self._wait(CLIENT_TIMEOUT)
            raise Silent(f"{site}: tmux did not answer within {CLIENT_TIMEOUT:.0f} s")
        if self._cut_short():
            raise Unavailable(f"{site}: the answer of tmux ended early")

    def _create(self, launches: Sequence[Launch]) -> dict[str, Result]:
        answers = {}
        for launch in launches:
            self._on_act("create", None, launch.session)
            answers[launch.session] = self._machine.launch(launch, self._project)
            self._on_act("created", self._named(launch.session), answers[launch.session].outcome)
        return answers

    def _remove(self, refs: Sequence[PaneRef]) -> dict[str, str]:
        answers = {}
        for ref in refs:
            session = self._resolve(ref)
            if isinstance(session, str):
                answers[ref.session] = session
                continue
            self._on_act("remove", session, "")
            self._machine.close(session)
            answers[ref.session] = ""
        return answers

    def _type(self, ref: PaneRef, text: str, keys: Sequence[str]) -> str:
        session = self._resolve(ref)
        if isinstance(session, str):
            return session
        if session.dead:
            return "pane is dead"
        if session.in_mode:
            return "pane is in copy mode"
        self._on_act("press" if keys else "paste", session, " ".join(keys) or text)
        if session.program is not None:
            for key in keys:
                session.program.key(key)
            if text:
                session.program.paste(text)
        return ""

    def _named(self, name: str) -> SimSession | None:
        server = self._machine.server
        return server.sessions.get(name) if server else None

    def _resolve(self, ref: PaneRef) -> SimSession | str:
        server = self._machine.server
        if server is None or server.ident != ref.server:
            return "another server"
        session = server.sessions.get(ref.session)
        if session is None or session.pane != ref.pane:
            return "pane is gone, or its session was renamed"
        if session.run != ref.run or session.pid != ref.pid:
            return "another run"
        return session

    def _view(self, server: ServerId, session: SimSession) -> PaneView:
        program = session.program
        x, y = program.cursor() if program else (0, 0)
        activity = program.activity() if program and not session.dead else session.activity
        key = (
            session.name,
            session.dead,
            session.reaped,
            int(activity),
            x,
            y,
            session.in_mode,
            session.typed_at,
        )
        if session.shown is not None and session.shown[0] == key:
            return session.shown[1]
        view = PaneView(
            ref=PaneRef(server, session.name, session.pane, session.pid, session.run),
            dead=session.dead,
            exit_code=session.exit_code if session.reaped else None,
            exit_signal=session.exit_signal if session.reaped else None,
            created=float(int(session.created)),
            activity=float(int(activity)),
            cursor_x=x,
            cursor_y=y,
            in_mode=session.in_mode,
            typed_at=session.typed_at,
            project=session.project,
        )
        session.shown = (key, view)
        return view
