"""One look at the world: one list for the whole fleet, then only what changed. Nothing here judges.

What is kept between two looks stands in the `Eye` of each member (`fleet/supervisor/eye.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from fleet.backends.sources import reports
from fleet.core.case import AgentSeen, Wish
from fleet.core.desired import Desire, Desired, Want
from fleet.core.memory import AgentMemory, FleetMemory
from fleet.core.model import Backend, Fleet, Member
from fleet.core.seen import Listing, PaneRef, PaneView, ServerId
from fleet.ports import Unavailable
from fleet.supervisor.cli_servers import Mail
from fleet.supervisor.eye import Eye, Given, eager, unseen_run
from fleet.supervisor.hear import Ears
from fleet.supervisor.world import World
from fleet.times.moment import NEVER, Moment, Wall

LAST_LINES = 10


class Look(NamedTuple):
    """What one look found. `changed`: agents to be judged anew even if they are not due."""

    listing: Listing | None  # None: it is blind
    blind: str
    seen: Mapping[str, AgentSeen]
    changed: frozenset[str]
    alive: Mapping[str, PaneRef]  # live panes of ours by session
    unreaped: frozenset[int] = frozenset()  # pids of the dead whose exit status is waited for
    due: frozenset[str] = frozenset()  # agents that were looked at wholly
    generation: int = 0  # of the wishes
    again: frozenset[str] = frozenset()  # agents of whose newest run was heard too late for this look

    @property
    def server(self) -> ServerId | None:
        """The tmux server that answered."""
        return self.listing.server if self.listing is not None else None

    @property
    def panes(self) -> tuple[PaneView, ...]:
        """Everything with our stamp."""
        return self.listing.panes if self.listing is not None else ()

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
    ) -> None:
        """`lease`: pid and start of the verb that looks; its own hold does not keep it away."""
        self._world = world
        self._lease = lease
        self.ears: Ears | None = None  # what hears structured sources; none for one that only glances
        self._mail = mail
        self.listen = False  # a source has news: the next look reads the reports of all agents
        # A list that the next look may take instead of a new one: while no wish has changed since, which
        # every verb does before it acts.
        self.offered: tuple[Listing, int] | None = None
        self._eyes: dict[str, Eye] = {}  # by session

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
            listing = self._offered(desired) or self._world.tmux.listing()
        except Unavailable as error:
            return self._blind(specs, desired, now, str(error))
        self._world.processes.begin_look()
        panes = _by_session(specs, listing.panes, memories)
        foreign = frozenset(listing.foreign)
        lost_at = now.steady if _server_changed(listing.server, fleet_memory) else fleet_memory.server_lost
        entries = desired.entries
        given = [
            Given(s, panes.get(s.session), entries.get(s.name), memories[s.name], s.session in foreign,
                  lost_at, s.name in due, self.is_leased(entries.get(s.name)))
            for s in specs
        ]  # fmt: skip
        captured = self._capture(given, now)
        found, changed = {}, set()
        for one in given:
            name = one.spec.name
            found[name] = self._member(fleet, one, now, captured.get(name))
            if self._eyes[one.spec.session].keep(one, found[name]):
                changed.add(name)
        self.listen = False
        return Look(
            listing,
            "",
            found,
            frozenset(changed),
            {p.ref.session: p.ref for p in listing.panes if not p.dead},
            _unreaped(listing.panes, given),
            generation=desired.generation,
        )

    def _offered(self, desired: Desired) -> Listing | None:
        (listing, generation), self.offered = self.offered or (None, 0), None
        return listing if generation == desired.generation else None

    def _blind(self, specs: Sequence[Member], desired: Desired, now: Moment, why: str) -> Look:
        """Tmux did not answer: only wishes are known."""
        wishes = {s.name: self._wish(desired.entries.get(s.name), now.wall) for s in specs}
        seen = {name: AgentSeen(blind=why, wish=wish) for name, wish in wishes.items()}
        return Look(None, why, seen, frozenset(seen), {})

    def learned(self, name: str) -> None:
        """The id of this conversation is on record."""
        if self.ears is not None:
            self.ears.learned.pop(name, None)

    def forget(self, session: str) -> None:
        """After an act on a pane the next look must be a real one."""
        eye = self._eyes.get(session)
        if eye is not None:
            eye.forget_screen()

    # --- wishes -------------------------------------------------------------------------------------

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

    # --- screens ------------------------------------------------------------------------------------

    def _capture(self, given: Sequence[Given], now: Moment) -> dict[str, str]:
        """The screens that are worth it, by name."""
        wanted = {one.spec.name: pane for one in given if (pane := self._worth_a_capture(one, now))}
        if not wanted:
            return {}
        ended = [pane.ref for pane in wanted.values() if pane.dead]
        try:
            texts = self._world.tmux.capture([pane.ref for pane in wanted.values() if not pane.dead])
            if ended:
                # tmux writes "Pane is dead" below the last words, which may push them off a short screen
                texts |= self._world.tmux.capture(ended, back=LAST_LINES)
        except Unavailable:
            for one in given:
                self.forget(one.spec.session)
            return {}
        return {n: texts[p.ref.session] for n, p in wanted.items() if p.ref.session in texts}

    def _worth_a_capture(self, given: Given, now: Moment) -> PaneView | None:
        """Its pane, if that is to be read now."""
        pane = given.pane
        if pane is None or given.is_unread or not (pane.dead or given.spec.has_screen):
            return None
        waited_for = given.due and eager(given.memory)
        return pane if self._eye(given).wants_capture(pane, now, waited_for=waited_for) else None

    def _eye(self, given: Given) -> Eye:
        """The eye on a member; a new one, with the same last look, for a new run in its pane."""
        session, pane = given.spec.session, given.pane
        eye = self._eyes.get(session)
        if eye is None or (pane is not None and eye.run != pane.ref.run):
            new = Eye() if pane is None else Eye(pane.ref.run, pane.ref.pid)
            if eye is not None:
                new.given, new.seen = eye.given, eye.seen
            eye = self._eyes[session] = new
        return eye

    # --- one member ---------------------------------------------------------------------------------

    def _member(self, fleet: Fleet, given: Given, now: Moment, fresh: str | None) -> AgentSeen:
        """What is seen of it: what was seen, if nothing has changed. `fresh`: its screen, as captured now."""
        eye, spec, pane = self._eye(given), given.spec, given.pane
        reported = self.listen and reports(fleet.backend_of(spec))
        if fresh is None and not given.due and not reported and eye.still(given):
            assert eye.seen is not None, "it stands still"
            return eye.seen._replace(fresh=False) if eye.seen.fresh else eye.seen
        wish = self._wish(given.entry, now.wall)
        if pane is None:
            return self._absent(eye, given, wish)
        if pane.dead:
            return self._dead(fleet, eye, given, wish, fresh)
        eye.swept = ""
        if spec.has_screen and wish.want is not Want.DOWN:
            return self._running(fleet, eye, given, pane, wish, now, fresh)
        left = eye.survivors(self._world, given) if given.memory.stopping else None
        return AgentSeen(pane=pane, survivors=left, wish=wish)

    def _dead(self, fleet: Fleet, eye: Eye, given: Given, wish: Wish, fresh: str | None) -> AgentSeen:
        if fresh is not None:
            eye.take_words(fleet.backend_of(given.spec), fresh, self._world.host.environ)
        left = eye.survivors(self._world, given)
        return AgentSeen(pane=given.pane, survivors=left, wish=wish, last_words=eye.words, ending=eye.ending)

    def _absent(self, eye: Eye, given: Given, wish: Wish) -> AgentSeen:
        memory = given.memory
        left, of = eye.survivors(self._world, given), ""
        if left == 0 and not memory.stopping:
            left, of = self._unseen_survivors(memory)
        lost = NEVER < memory.alive_since < given.lost_at
        return AgentSeen(foreign=given.foreign, survivors=left, left=of, wish=wish, server_lost=lost)

    def _unseen_survivors(self, memory: AgentMemory) -> tuple[int | None, str]:
        """A run that a verb started and we never saw may be gone with its server, and not its children."""
        run = unseen_run(memory)
        if not run:
            return 0, ""
        try:
            left = self._world.processes.count(0, run)
        except Unavailable:
            return None, ""
        return left, run if left else ""

    def _running(
        self, fleet: Fleet, eye: Eye, given: Given, pane: PaneView, wish: Wish, now: Moment, fresh: str | None
    ) -> AgentSeen:
        """A member whose screen is read: screen, processes, and what its CLI reports."""
        spec, memory = given.spec, given.memory
        backend = fleet.backend_of(spec)
        if fresh is not None:
            eye.take_screen(backend, fresh, pane, memory, now, self._world.host.zone)
        if eye.wants_tree(backend, given, now, fresh=fresh is not None):
            eye.scan(self._world, fleet, backend, pane.ref.pid, now)
        left = eye.survivors(self._world, given) if memory.stopping else None
        found = AgentSeen(
            pane=pane,
            reading=eye.reading,
            fresh=fresh is not None,
            proc=eye.proc,
            survivors=left,
            wish=wish,
            auth_failed=eye.refusal(memory),
        )
        if backend.preamble and memory.outbox:
            self._watch_preamble(fleet, spec, eye, pane.ref.run, now)
            found = found._replace(preparing=not eye.launched, launched=eye.launched)
        if self.ears is None or not backend.signals:
            return found
        if given.due or fresh is not None or self.listen:
            self._hear(self.ears, eye, given, backend, now)
        return self._with_reports(self.ears, eye, given, found, now)

    @staticmethod
    def _hear(ears: Ears, eye: Eye, given: Given, backend: Backend, now: Moment) -> None:
        run = given.memory.run
        known = run if run is not None and run.id == eye.run else None
        eye.take_report(ears.hear(given.spec, backend, known, eye.tree), now)

    def _with_reports(self, ears: Ears, eye: Eye, given: Given, found: AgentSeen, now: Moment) -> AgentSeen:
        """The look, with what its sources say and what became of the messages that its server was given."""
        name, session, mail = given.spec.name, given.spec.session, self._mail
        posted = mail.outcomes(m.id for m in given.memory.outbox if m.posted) if mail is not None else ()
        return eye.with_reports(
            found,
            now,
            limit=ears.new_limit(session),
            conversation=ears.learned.get(name, ""),
            mailbox=ears.has_mailbox(session),
            posted=posted,
        )

    def _watch_preamble(self, fleet: Fleet, spec: Member, eye: Eye, run: str, now: Moment) -> None:
        """Its own last line says that it has ended, and in which run."""
        if not eye.launched:
            with suppress(OSError, UnicodeDecodeError):
                said = self._world.disk.read(f"{fleet.log_dir}/state/preamble-{spec.session}", 200).decode()
                eye.launched = now.steady if said.split(" ")[0] == run else NEVER


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


def _unreaped(panes: Sequence[PaneView], given: Sequence[Given]) -> frozenset[int]:
    """The pids of the dead whose exit status is waited for: tmux does not know it yet."""
    ended = {one.spec.session for one in given if one.ends_anyway}
    return frozenset(p.ref.pid for p in panes if p.unreaped and p.ref.session not in ended)


def _server_changed(server: ServerId | None, memory: FleetMemory) -> bool:
    """Is the server that held our sessions gone?"""
    known = (memory.server_pid, memory.server_started)
    return bool(memory.server_pid) and (server is None or (server.pid, server.started) != known)
