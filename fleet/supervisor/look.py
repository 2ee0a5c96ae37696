"""One look at the world: one list for the whole fleet, then only what changed.

What is expensive (captures, process trees, sweeps for survivors) is asked for only where the list says
that something moved, where a rule waits for it, or when a full look is due. Nothing here judges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from fleet.backends.screen_reader import ending, read
from fleet.backends.sources import reports
from fleet.core.case import AgentSeen, ProcView, Wish
from fleet.core.desired import Desire, Desired, Want
from fleet.core.heard import Heard
from fleet.core.memory import AgentMemory, FleetMemory, Limit
from fleet.core.model import Backend, Fleet, Member
from fleet.core.seen import PaneRef, PaneView, Posted, Proc, Reading, ScreenState, ServerId
from fleet.core.words import MessageState
from fleet.ports import Unavailable
from fleet.supervisor.cli_servers import Mail
from fleet.supervisor.hear import NOTHING, Ears
from fleet.supervisor.world import World
from fleet.times.moment import LONG_AGO, NEVER, Moment, Steady, Wall

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "tcsh"})
BUSY_RATE = 0.1  # share of one processor that is more than an idle full-screen program needs
BUSY_MIN_S = 0.3
MEASURED_S = 5.0  # an agent may well be quiet for less
CHILD_YOUNG_S = 3600.0  # a child older than this is part of the furniture, not work
FURNITURE_S = 5.0  # and so is one that came with the agent
LAST_WORDS = 1500
TWO_SECONDS = 2.0  # the list dates activity in whole seconds
HEARSAY_S = 1800.0
LAST_LINES = 10

UNMEASURED = ProcView(measured=False)


@dataclass(slots=True)
class Eye:
    """What we keep of one session between two looks."""

    run: str = ""
    listed: PaneView | None = None  # as it was when last captured, or has the same change key
    again: bool = True  # the list's clock has seconds: look once more after the last change
    reading: Reading | None = None
    shown: tuple[Backend, str, int] | None = None  # what that was read from
    words: str = ""
    ending: Reading | None = None
    proc: ProcView = UNMEASURED
    cpu: float = 0.0
    cpu_at: float = 0.0  # on the monotonic clock
    scanned: Steady = LONG_AGO
    pid: int = 0
    swept: str = ""  # run of which no process was left
    tree: tuple[Proc, ...] = ()
    heard: Heard = NOTHING
    spoke: Steady = NEVER  # last new word of a structured source
    launched: Steady = NEVER  # when its preamble was first seen to have ended


@dataclass(frozen=True, slots=True)
class Kept:
    """What was seen of one agent, and all that it was seen from."""

    pane: PaneView | None
    entry: Desire | None
    memory: AgentMemory
    foreign: bool
    lost_at: Steady
    seen: AgentSeen


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found. `changed`: agents to be judged anew even if they are not due."""

    server: ServerId | None
    blind: str
    seen: Mapping[str, AgentSeen]
    changed: frozenset[str]
    alive: Mapping[str, PaneRef]  # live panes of ours by session
    panes: tuple[PaneView, ...] = ()  # everything with our stamp
    unreaped: frozenset[int] = frozenset()  # pids of the dead whose exit status tmux does not know yet
    due: frozenset[str] = frozenset()  # agents that were looked at wholly
    again: frozenset[str] = frozenset()  # agents of whose newest run was heard too late for this look

    def shows(self, session: str, pid: int) -> bool:
        """Does tmux hold that this process lives?"""
        ref = self.alive.get(session)
        return ref is not None and ref.pid == pid


class Senses:
    """Looks, and remembers between looks only what saves work."""

    def __init__(
        self,
        world: World,
        mail: Mail | None = None,
        lease: tuple[int, int] | None = None,
        read_screen: Callable[..., Reading] = read,
    ) -> None:
        """`lease`: pid and start of the verb that looks; its own hold does not keep it away."""
        self._world = world
        self._lease = lease
        self.ears: Ears | None = None  # what hears structured sources; none for one that only glances
        self._mail = mail
        self.listen = False  # a source has news: the next look reads the reports of all agents
        self._read = read_screen
        self._eyes: dict[str, Eye] = {}
        self._last: dict[str, tuple[object, ...]] = {}
        self._kept: dict[str, Kept] = {}

    def look(
        self,
        fleet: Fleet,
        memories: Mapping[str, AgentMemory],
        fleet_memory: FleetMemory,
        desired: Desired,
        now: Moment,
        due: frozenset[str],
    ) -> Look:
        """Look at everything once; agents in `due` wholly, the others where something moved."""
        specs = fleet.members
        try:
            listing = self._world.tmux.listing()
        except Unavailable as error:
            blind = str(error)
            wishes = {s.name: self._wish(desired.entries.get(s.name), now.wall) for s in specs}
            seen: dict[str, AgentSeen] = {n: AgentSeen(blind=blind, wish=w) for n, w in wishes.items()}
            return Look(None, blind, seen, frozenset(seen), {})
        self._world.processes.begin_look()
        by_session = _by_session(specs, listing.panes, memories)
        foreign = frozenset(listing.foreign)
        shown = [s for s in specs if not _is_unwanted(desired.entries.get(s.name))]
        captured = self._capture(shown, by_session, memories, due, now)
        lost_at = now.steady if _server_changed(listing.server, fleet_memory) else fleet_memory.server_lost
        found, changed = {}, set()
        for spec in specs:
            name, entry, kept = spec.name, desired.entries.get(spec.name), self._kept.get(spec.name)
            pane, memory, taken = by_session.get(spec.session), memories[name], spec.session in foreign
            fresh = captured.get(pane.ref.session) if captured and pane is not None else None
            asked = fresh is not None or name in due or self._has_news(fleet, spec)
            if kept is not None and not asked and _still(kept, pane, entry, memory, taken, lost_at):
                one = replace(kept.seen, fresh=False) if kept.seen.fresh else kept.seen
            else:
                one = self._see(
                    fleet, spec, pane, taken, memory, lost_at, self._wish(entry, now.wall), now,
                    due=name in due, fresh=fresh,
                )  # fmt: skip
            found[name] = one
            if kept is None or kept.seen is not one:
                self._kept[name] = Kept(pane, entry, memory, taken, lost_at, one)
                if self._moved(name, one):
                    changed.add(name)
        self.listen = False
        return Look(
            listing.server,
            "",
            found,
            frozenset(changed),
            {p.ref.session: p.ref for p in listing.panes if not p.dead},
            listing.panes,
            frozenset(p.ref.pid for p in listing.panes if p.unreaped),
        )

    def _has_news(self, fleet: Fleet, spec: Member) -> bool:
        """May a source of this one have spoken, though nothing moved on its screen?"""
        return self.listen and reports(fleet.backend_of(spec))

    def learned(self, name: str) -> None:
        """The id of this conversation is on record."""
        if self.ears is not None:
            self.ears.learned.pop(name, None)

    def is_leased(self, entry: Desire | None) -> bool:
        """Is another verb at work on it? A hold ends with its process, and with its time."""
        hold = entry.hold if entry is not None else None
        if hold is None or (hold.pid, hold.start) == self._lease:
            return False
        if hold.until <= self._world.clock.wall():
            return False
        return self._world.processes.start_of(hold.pid) == hold.start

    def _wish(self, entry: Desire | None, wall: Wall) -> Wish:
        if entry is None:
            return Wish()
        hold, held = entry.hold, ""
        mine = hold.why if hold is not None and (hold.pid, hold.start) == self._lease else ""
        if hold is not None and self.is_leased(entry):
            held = hold.why or f"process {hold.pid}"
        over = entry.over(wall)
        # a freeze stands until the record says that it was taken back: until then its processes are stopped
        return Wish(
            entry.want,
            entry.paused and not over,
            entry.frozen,
            held,
            entry.until,
            entry.tries,
            entry.resets,
            entry.run,
            mine,
            over,
        )

    def forget(self, session: str) -> None:
        """After an act on a pane the next look must be a real one."""
        eye = self._eyes.get(session)
        if eye is not None:
            eye.listed, eye.again = None, True

    # --- screens ------------------------------------------------------------------------------------

    def _capture(
        self,
        specs: Sequence[Member],
        panes: Mapping[str, PaneView],
        memories: Mapping[str, AgentMemory],
        due: frozenset[str],
        now: Moment,
    ) -> dict[str, str]:
        wanted: list[PaneRef] = []
        for spec in specs:
            pane = panes.get(spec.session)
            if pane is None or not (pane.dead or spec.has_screen):
                continue
            eye = self._eye(spec, pane)
            moved = pane is not eye.listed and not (eye.listed and eye.listed.change_key == pane.change_key)
            eye.listed = pane
            if (
                moved
                or eye.again
                or (spec.name in due and _eager(memories[spec.name]))
                or (pane.dead and not eye.words)
            ):
                wanted.append(pane.ref)
                # dated after now it is from before the clock was set back, and settled
                eye.again = moved or abs(now.since_wall(pane.activity)) < TWO_SECONDS
        if not wanted:
            return {}
        over = {p.ref.session for p in panes.values() if p.dead}
        ended = [ref for ref in wanted if ref.session in over]
        try:
            found = self._world.tmux.capture([ref for ref in wanted if ref.session not in over])
            # tmux writes "Pane is dead" below the last words, which may push them off a short screen
            return found | self._world.tmux.capture(ended, back=LAST_LINES) if ended else found
        except Unavailable:
            for spec in specs:
                self.forget(spec.session)
            return {}

    def _eye(self, spec: Member, pane: PaneView) -> Eye:
        eye = self._eyes.get(spec.session)
        if eye is None or eye.run != pane.ref.run:
            eye = self._eyes[spec.session] = Eye(run=pane.ref.run, pid=pane.ref.pid)
        return eye

    def _see(
        self,
        fleet: Fleet,
        spec: Member,
        pane: PaneView | None,
        foreign: bool,  # noqa: FBT001 - one of ten facts, all in the order of the look
        memory: AgentMemory,
        lost_at: Steady,
        wish: Wish,
        now: Moment,
        *,
        due: bool,
        fresh: str | None,
    ) -> AgentSeen:
        lost = pane is None and NEVER < memory.alive_since < lost_at
        if pane is None or pane.dead:
            words, said = "", None
            if pane is not None:
                eye = self._eye(spec, pane)
                if fresh is not None:
                    eye.words = fresh.rstrip()[-LAST_WORDS:] or " "
                    eye.ending = ending(fleet.backend_of(spec), eye.words)
                words, said = eye.words, eye.ending
            left, of = self._survivors(spec, pane, memory, due=due), ""
            if left == 0 and pane is None and not memory.stopping:
                left, of = self._unseen_survivors(memory)
            return AgentSeen(pane=pane, foreign=foreign and pane is None, survivors=left, left=of,
                             wish=wish, last_words=words, ending=said, server_lost=lost)  # fmt: skip
        eye = self._eye(spec, pane)
        eye.swept = ""
        if not spec.has_screen or wish.want is Want.DOWN:  # what is taken down is not read any more
            left = self._survivors(spec, pane, memory, due=due) if memory.stopping else None
            return AgentSeen(pane=pane, survivors=left, wish=wish)
        backend = fleet.backend_of(spec)
        if fresh is not None and not _read_before(eye, backend, fresh, pane.cursor_y):
            eye.shown = (backend, fresh, pane.cursor_y)
            eye.reading = self._read(
                backend, fresh, now=_written(pane, now), zone=self._world.host.zone, ours=_ours(memory)
            )
        if self._wants_tree(backend, eye, memory, due=due, fresh=fresh is not None, now=now):
            self._scan(fleet, backend, eye, pane.ref.pid, now)
        left = self._survivors(spec, pane, memory, due=due) if memory.stopping else None
        auth = eye.reading.line if eye.reading and eye.reading.state is ScreenState.AUTH else ""
        found = AgentSeen(
            pane=pane, reading=eye.reading, fresh=fresh is not None, proc=eye.proc, survivors=left,
            wish=wish,
            auth_failed=auth if memory.state == ScreenState.AUTH and memory.state_looks > 1 else "",
        )  # fmt: skip
        if backend.preamble and memory.outbox:
            self._watch_preamble(fleet, spec, eye, pane.ref.run, now)
            found = replace(found, preparing=not eye.launched, launched=eye.launched)
        if self.ears is None or not backend.signals:
            return found
        if due or fresh is not None or self.listen:
            self._hear(self.ears, spec, backend, eye, memory, now)
        found = replace(
            found,
            conversation=self.ears.learned.get(spec.name, ""),
            mailbox=self.ears.has_mailbox(spec.session),
            posted=self._posted(memory),
        )
        return _with_word(found, eye, self.ears.new_limit(spec.session), now)

    def _posted(self, memory: AgentMemory) -> tuple[tuple[str, Posted], ...]:
        """What became of the messages that a server was given."""
        return self._mail.outcomes(m.id for m in memory.outbox if m.posted) if self._mail is not None else ()

    @staticmethod
    def _hear(
        ears: Ears, spec: Member, backend: Backend, eye: Eye, memory: AgentMemory, now: Moment
    ) -> None:
        run = memory.run if memory.run is not None and memory.run.id == eye.run else None
        heard = ears.hear(spec, backend, run, eye.tree)
        if heard != eye.heard:
            eye.heard, eye.spoke = heard, now.steady

    # --- processes ----------------------------------------------------------------------------------

    @staticmethod
    def _wants_tree(
        backend: Backend, eye: Eye, memory: AgentMemory, *, due: bool, fresh: bool, now: Moment
    ) -> bool:
        if due and now.since(eye.scanned) > 1.0:
            return True
        typing = any(m.status is MessageState.QUEUED for m in memory.outbox)
        if not (fresh and backend.process_name) and not typing:
            return False
        working = (
            eye.reading is not None and eye.reading.state is ScreenState.WORKING and eye.reading.pattern != ""
        )
        return not working and now.since(eye.scanned) > 1.0

    def _watch_preamble(self, fleet: Fleet, spec: Member, eye: Eye, run: str, now: Moment) -> None:
        """Its own last line says that it has ended, and in which run."""
        if not eye.launched:
            with suppress(OSError, UnicodeDecodeError):
                said = self._world.disk.read(f"{fleet.log_dir}/state/preamble-{spec.session}", 200).decode()
                eye.launched = now.steady if said.split(" ")[0] == run else NEVER

    def _scan(self, fleet: Fleet, backend: Backend, eye: Eye, pid: int, now: Moment) -> None:
        began = self._world.clock.mono()
        try:
            tree = self._world.processes.tree(pid)
        except Unavailable:
            return
        if not tree:
            return
        ended = self._world.clock.mono()  # stopped in between? the shorter span is the safe one
        before, eye.tree = eye.tree, tree
        names = {n for p in tree for n in (p.name, p.exe)}
        expected = not backend.process_name or backend.process_name in names
        others = {
            b.process_name
            for b in fleet.backends
            if b.process_name and b.process_name != backend.process_name
        }
        other = "" if expected else next(iter(sorted(others & names)), "")
        cpu = sum(p.cpu for p in tree)
        elapsed = began - eye.cpu_at
        used = cpu - eye.cpu
        compared = eye.cpu_at > 0
        busy = compared and used > max(BUSY_MIN_S, BUSY_RATE * elapsed)
        measured = compared and (busy or elapsed >= MEASURED_S)
        # what a tool used is lost with it: one that has ended since the last look was at work until then
        alive = {(p.pid, p.start) for p in tree}
        over = [p for p in before if (p.pid, p.start) not in alive]
        busy = busy or any(_at_work(tree[0], child) for child in tree[1:])
        busy = busy or any(_at_work(before[0], child) for child in over)
        eye.scanned = now.steady
        if measured or not compared:
            eye.cpu, eye.cpu_at = cpu, ended
        eye.proc = ProcView(expected=expected, other=other, shell_only=not expected and _only_shells(tree),
                            busy=busy, measured=measured)  # fmt: skip

    def _survivors(
        self, spec: Member, pane: PaneView | None, memory: AgentMemory, *, due: bool
    ) -> int | None:
        stop = memory.stopping
        if pane is not None and pane.unreaped and memory.state != ScreenState.DEAD:
            return None  # nothing is decided before its status is known, which takes a moment
        run, pid = memory.seen_run, 0
        if stop:
            run, pid = stop.run, stop.pid
        elif pane is not None:
            run, pid = pane.ref.run, pane.ref.pid
        if not run:
            return 0
        eye = self._eyes.setdefault(spec.session, Eye(run=run))
        if eye.swept == run and not due:
            return 0
        if pid == 0 and eye.run == run:
            pid = eye.pid
        try:
            left = self._world.processes.count(pid, run)
        except Unavailable:
            return None
        if left == 0 and (pane is None or pane.dead):
            eye.swept = run
        return left

    def _unseen_survivors(self, memory: AgentMemory) -> tuple[int | None, str]:
        """A run that a verb started and we never saw may be gone with its server, and not its children."""
        run = _unseen_run(memory)
        if not run:
            return 0, ""
        try:
            left = self._world.processes.count(0, run)
        except Unavailable:
            return None, ""
        return left, run if left else ""

    def _moved(self, name: str, seen: AgentSeen) -> bool:
        """Did anything change that a rule looks at?"""
        pane = seen.pane
        key = (
            seen.blind, pane.ref if pane else None, pane.dead if pane else None,
            (pane.exit_code, pane.exit_signal) if pane else None, pane.in_mode if pane else None,
            seen.fresh, seen.reading, seen.proc, seen.survivors, seen.wish, seen.foreign, seen.server_lost,
            seen.working, seen.answered, seen.asked, seen.limit, seen.prompts, seen.posted, seen.conversation,
        )  # fmt: skip
        if self._last.get(name) == key and not seen.fresh:
            return False
        self._last[name] = key
        return True


def _by_session(
    specs: Sequence[Member], panes: Sequence[PaneView], memories: Mapping[str, AgentMemory]
) -> dict[str, PaneView]:
    """Panes by the session they were made for. Who renamed a session moved the name, not the run."""
    named = {p.ref.session: p for p in panes}
    found = {s.session: named[s.session] for s in specs if s.session in named}
    absent = [s for s in specs if s.session not in found]
    runs = {p.ref.run: p for p in panes if p.ref.run} if absent else {}
    for spec in absent:
        memory = memories[spec.name]
        pane = runs.get(memory.seen_run) or (runs.get(memory.run.id) if memory.run else None)
        if pane is not None:
            found[spec.session] = pane
    return found


def _is_unwanted(entry: Desire | None) -> bool:
    return entry is not None and entry.want is Want.DOWN


def _still(
    kept: Kept,
    pane: PaneView | None,
    entry: Desire | None,
    memory: AgentMemory,
    foreign: bool,  # noqa: FBT001 - as it is kept
    lost_at: Steady,
) -> bool:
    """Is it exactly as at the last look, and does no rule wait for more than the list shows?"""
    if kept.entry is not entry or (kept.pane is not pane and kept.pane != pane):
        return False
    if memory.stopping or (entry is not None and entry.hold is not None):
        return False
    if pane is not None and not pane.dead:
        return not memory.outbox and memory.state != ScreenState.AUTH
    buried = kept.seen.survivors == 0 and not (pane is None and _unseen_run(memory))
    return buried and kept.memory is memory and (kept.foreign, kept.lost_at) == (foreign, lost_at)


def _unseen_run(memory: AgentMemory) -> str:
    """The run on record, if it is neither the one we saw last nor one whose end was counted."""
    run = memory.run
    return "" if run is None or run.id in {memory.seen_run, memory.over} else run.id


def _written(pane: PaneView, now: Moment) -> Wall:
    """When its newest words can have been written: a time of day among them is the next one after that."""
    return min(now.wall, pane.activity) if pane.activity else now.wall


def _ours(memory: AgentMemory) -> tuple[str, ...]:
    """What we typed: on the screen, or in the composer."""
    return (*memory.said, *(m.text or m.tail for m in memory.outbox if m.status is not MessageState.QUEUED))


def _read_before(eye: Eye, backend: Backend, text: str, cursor_y: int) -> bool:
    """Does the last reading hold for this screen as well? One that names a time is made anew."""
    shown, reading = eye.shown, eye.reading
    if shown is None or shown[0] is not backend or shown[1:] != (text, cursor_y) or reading is None:
        return False
    return reading.until is None and reading.marker is None


def _with_word(found: AgentSeen, eye: Eye, limit: Limit | None, now: Moment) -> AgentSeen:
    """The look, with what the structured sources say.

    An old "working" does not outweigh an idle prompt. One that is dated in the future was said before the
    clock was set back: it outweighs nothing.
    """
    heard, working = eye.heard, eye.heard.working
    idle = eye.reading is not None and eye.reading.state is ScreenState.IDLE
    age = now.since_wall(heard.at)
    if working and (age < -HEARSAY_S or (idle and age > HEARSAY_S)):
        working = None
    return replace(
        found,
        working=working,
        answered=heard.own_words,
        heard_at=heard.at,
        heard_from=heard.source,
        model=heard.model,
        asked=heard.asked if working else "",
        limit=limit,
        prompts=heard.prompts,
        transcript=eye.spoke,
        auth_failed=found.auth_failed or heard.auth,
    )


def _server_changed(server: ServerId | None, memory: FleetMemory) -> bool:
    """Is the server that held our sessions gone?"""
    known = (memory.server_pid, memory.server_started)
    return bool(memory.server_pid) and (server is None or (server.pid, server.started) != known)


def _eager(memory: AgentMemory) -> bool:
    """Does a rule wait for another look at this screen?"""
    return (
        bool(memory.outbox)
        or bool(memory.limit_hint)
        or memory.limit is not None
        or not memory.ready
        or memory.state in {ScreenState.WEDGED, ScreenState.ASKING, ScreenState.AUTH, None}
    )


def _only_shells(tree: Sequence[Proc]) -> bool:
    return all((p.exe or p.name) in SHELLS for p in tree)


def _at_work(agent: Proc, child: Proc) -> bool:
    """A tool that waits for an answer uses no processor; a server that came with the agent is no tool."""
    return child.age < CHILD_YOUNG_S and agent.age - child.age > FURNITURE_S
