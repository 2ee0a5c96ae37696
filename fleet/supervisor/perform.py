"""Carry out actions, verbs' and watchdog's alike: look again, put the cause on record, act, say how it went.

What is expected and not found is STALE: nothing is done, and the next look decides anew. Files that a
start needs are written before tmux is asked; what the operator wants is read once more in between.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fleet.backends import sources
from fleet.core.codec import to_plain
from fleet.core.decision import Result
from fleet.core.effects import Action, Keep, LearnId, Paste, Post, Press, Remove, Signal, Start, Unpause
from fleet.core.memory import MadeFor, Message, Run
from fleet.core.model import Backend, Fleet, Member
from fleet.core.queue import tail_of
from fleet.core.seen import PaneRef
from fleet.core.starts import STAMP, UNSAID, first_words, goes_on, origin, source
from fleet.core.wording import prepared
from fleet.core.words import EventType, Outcome
from fleet.ports import Launch, Unavailable
from fleet.store.eventlog import Begun
from fleet.store.house import House
from fleet.store.memories import Records
from fleet.supervisor.cli_servers import Letter, Mail
from fleet.supervisor.hear import server_key
from fleet.supervisor.launch import ARGUMENT_CAP, Kit, compose, env_of, pointer, preflight, server_env
from fleet.supervisor.phase import NoPrompt, prompt_for
from fleet.supervisor.world import World

# Sessions made at once. A thousand at once would keep tmux from answering for half a minute.
BATCH = 20
UNTOLD = Result(Outcome.REFUSED, "tmux did not say")
NOTHING = MadeFor()
# What of a declaration a running process cannot follow without a restart.
FACTS = ("model", "backend", "dir", "env", "bin", "flags", "role", "command")
NOT_SAID = frozenset({Outcome.STALE, Outcome.REFUSED, Outcome.IMPOSSIBLE})  # its words reached no agent


class Order(NamedTuple):
    """One start: whom, why, and what it takes the place of."""

    spec: Member
    cause: str
    replace: PaneRef | None = None
    resume: bool = True
    made_for: MadeFor = NOTHING
    planned: bool = True
    by_person: bool = True  # a verb starts it, with its caller's environment


class Briefing(NamedTuple):
    """The first words to an agent, as its run keeps them. A service is told nothing."""

    typed: str = ""  # the file that holds them
    tail: str = ""
    digest: str = ""


class Kickoff(NamedTuple):
    """The prompt of one start, written."""

    file: str
    size: int  # bytes
    points: bool  # the CLI gets a pointer to the file instead
    typed: str  # the file whose words are typed; empty: there are none
    words: str  # that the agent is given


@dataclass(slots=True)
class Ready:
    """A start with all its files written."""

    order: Order
    run: Run
    launch: Launch


@dataclass(slots=True)
class Performer:
    """Carries out the effects on agents."""

    world: World
    house: House
    records: Records
    mail: Mail | None = None  # None for a verb: it posts nothing

    # --- starting -----------------------------------------------------------------------------------

    def start(
        self, fleet: Fleet, orders: Sequence[Order], wanted: Callable[[str], bool]
    ) -> dict[str, Result]:
        """Start all of these in one batch; `wanted` is asked again at the last moment."""
        results: dict[str, Result] = {}
        with self.world.locks.state():
            try:
                heirs = [order.spec.session for order in orders if not order.by_person]
                found = self.world.tmux.inherited(heirs)
            except Unavailable as error:
                return {order.spec.name: Result(Outcome.UNKNOWN, str(error)) for order in orders}
            # what a pane may find in its environment without being its own: the scripts take it out
            names = found.names | frozenset(server_env(fleet, self.world.host.environ))
            ready: list[Ready] = []
            for order in orders:
                if not wanted(order.spec.name):
                    results[order.spec.name] = Result(Outcome.STALE, "it is not wanted up any more")
                    continue
                made = self._prepare(fleet, order, names, found.given.get(order.spec.session, {}))
                if isinstance(made, Result):
                    results[order.spec.name] = made
                else:
                    ready.append(made)
            results.update(self._create(ready))
        return results

    def _create(self, ready: list[Ready]) -> dict[str, Result]:
        """The sessions, and on record what became of each; by name."""
        if not ready:
            return {}
        self.world.point("start.begun")
        self.house.events.begin([Begun("start", r.order.spec.name, r.run.id, r.order.cause) for r in ready])
        self.world.point("start.remove")
        said = self._make_sessions(ready)
        self.world.point("start.created")
        results: dict[str, Result] = {}
        for one in ready:
            result = results[one.order.spec.name] = said[one.launch.session]._replace(run=one.run)
            self._note_start(one, result)
        return results

    def _make_sessions(self, ready: list[Ready]) -> dict[str, Result]:
        """Take the old sessions away and make the new ones, a batch at a time; by session."""
        old = [r.order.replace for r in ready if r.order.replace is not None]
        said = dict.fromkeys((r.launch.session for r in ready), UNTOLD)
        at = 0
        try:
            if old:
                self.world.tmux.remove(old)
            for at in range(0, len(ready), BATCH):
                self.world.point("start.create")
                said |= self.world.tmux.create([r.launch for r in ready[at : at + BATCH]])
        except Unavailable as error:
            asked, rest = ready[at : at + BATCH], ready[at + BATCH :]
            said |= {r.launch.session: Result(Outcome.UNKNOWN, str(error)) for r in asked}
            said |= {r.launch.session: Result(Outcome.REFUSED, f"not tried: {error}") for r in rest}
        return said

    def _note_start(self, one: Ready, result: Result) -> None:
        run = one.run
        if result.ok:
            self.house.events.record(
                EventType.AGENT_STARTED,
                agent=one.order.spec.name,
                reason=one.order.cause,
                run=run.id,
                model=run.model,
                phase=run.made_for.phase,
                resumed=run.resumed,
            )
        elif result.outcome in NOT_SAID and run.brief:
            self.records.save_run(run._replace(told="", brief=UNSAID))  # no agent read this text

    def _prepare(
        self, fleet: Fleet, order: Order, server_names: frozenset[str], kept: Mapping[str, str]
    ) -> Ready | Result:
        """Write everything the start needs; a Result says why it cannot be."""
        spec = order.spec
        identity = self.world.draw()[:16]
        last = self.records.run(spec.session)
        whose = origin(last, kept.get(STAMP, ""), by_person=order.by_person)
        as_declared = last is not None and last.print == fingerprint(fleet, spec)
        env = env_of(fleet, spec, source(whose, self.world.host.environ, kept, as_declared=as_declared))
        kit, briefing = Kit(), Briefing()
        if spec.has_screen:
            if why := preflight(self.world.disk, fleet, spec, env):
                return Result(Outcome.IMPOSSIBLE, why)
            try:
                kit, briefing = self._equip(fleet, spec, order, env)
            except NoPrompt as error:
                return Result(Outcome.IMPOSSIBLE, str(error))
        backend = fleet.backend_of(spec)
        run = Run(
            identity,
            spec.session,
            self.world.clock.wall(),
            backend=backend.name,
            model=kit.model,
            made_for=order.made_for,
            conversation=kit.resume_id or kit.session_id,
            resumed=bool(kit.resume_id),
            delivery=backend.prompt_delivery,
            kickoff=briefing.typed,
            tail=briefing.tail,
            print=fingerprint(fleet, spec),
            why=order.cause,
            server=f"http://127.0.0.1:{kit.port}" if kit.port else "",
            told=order.made_for.phase,
            brief=briefing.digest,
            origin=whose,
        )
        script = compose(fleet, spec, kit, run=identity, held=env, server_names=server_names)
        path = self.house.path(f"launch-{spec.session}.sh")
        self.world.disk.write(path, script.encode("utf-8", "surrogateescape"), sync=False)
        self.records.save_run(run)
        return Ready(order, run, Launch(spec.session, path, identity, f"{spec.session}.log", env))

    def _equip(
        self, fleet: Fleet, agent: Member, order: Order, held: Mapping[str, str]
    ) -> tuple[Kit, Briefing]:
        """Choose the conversation of an agent, and write the files that its CLI reads."""
        backend = fleet.backend_of(agent)
        known = (self.house.store.read_text(f"{agent.name}.id") or "").strip()
        last = self.records.run(agent.session)
        may = order.resume and goes_on(agent, backend, last, planned=order.planned)
        resume_id = known if known and may and self._is_kept(agent, backend, known, held) else ""
        chosen = "" if resume_id else self._new_conversation(agent, backend, known)
        model, prompt = prompt_for(self.world.disk, fleet, agent, order.made_for.phase)
        brief = digest(prompt)
        prompt = first_words(prompt, brief, last, phase=order.made_for.phase, resumed=bool(resume_id))
        kickoff = self._write_kickoff(agent, backend, prompt)
        signals = self.house.path(f"signals/{agent.session}")
        self.world.disk.make_dir(signals)
        settings = self._settings(agent, backend)
        port, key = self._server(agent, backend)
        kit = Kit(
            model=model,
            kickoff_file=kickoff.file,
            kickoff_bytes=kickoff.size,
            points=kickoff.points,
            resume_id=resume_id,
            session_id=chosen,
            settings_file=settings,
            signals_dir=signals,
            notify=sources.notify(backend, signals) if backend.notify_flag else "",
            port=port,
            key_file=key,
        )
        return kit, Briefing(kickoff.typed, tail_of(kickoff.words[-400:]), brief)

    def _write_kickoff(self, agent: Member, backend: Backend, prompt: str) -> Kickoff:
        """The prompt in its file; beside it a pointer to it where the CLI cannot be given the whole."""
        file = self.house.path(f"kickoff-{agent.session}.txt")
        by_argument = backend.prompt_delivery == "arg"
        given = prepared(prompt, backend.texts, "argument" if by_argument else "keys")
        whole = by_argument and not given.refused
        data = (given.text if whole else prompt).encode("utf-8", "surrogateescape")
        self.world.disk.write(file, data, sync=False)
        points = bool(given.refused) or len(data) > ARGUMENT_CAP
        if backend.prompt_delivery != "ping" or not points:
            return Kickoff(file, len(data), points, file if prompt.strip() else "", prompt)
        words, typed = pointer(file), self.house.path(f"pointer-{agent.session}.txt")
        self.world.disk.write(typed, words.encode("utf-8", "surrogateescape"), sync=False)
        return Kickoff(file, len(data), points, typed, words)

    def _new_conversation(self, agent: Member, backend: Backend, known: str) -> str:
        """The id of a new conversation, where we choose it. The one that was known is set aside."""
        name = f"{agent.name}.id"
        if known and agent.resume and backend.supports_resume:
            self.world.disk.rename(self.house.path(name), self.house.path(f"{name}.set-aside"))
        chosen = _uuid(self.world.draw()) if backend.session_id_flag else ""
        if chosen:
            self.house.store.write_text(name, chosen + "\n")
        return chosen

    def _settings(self, agent: Member, backend: Backend) -> str:
        """The file of settings by which its CLI reports to us; empty where it needs none."""
        told = sources.settings(backend) if backend.settings_flag else {}
        if not told:
            return ""
        path = self.house.path(f"settings-{agent.session}.json")
        self.world.disk.write(path, json.dumps(told).encode(), sync=False)
        return path

    def _is_kept(self, agent: Member, backend: Backend, conversation: str, held: Mapping[str, str]) -> bool:
        """Does the CLI itself know this id of ours? One that never had a turn is on record here only."""
        if not backend.session_id_flag or not backend.signals or agent.env_file or backend.preamble:
            return True  # its own id, or nothing that we could look at
        env = {**self.world.host.environ, **held, **dict(backend.env), **dict(agent.env)}
        facts = sources.Facts(os.path.realpath(agent.dir), 0.0, conversation, env=env)
        wanted = sources.wanted(backend, facts)
        tails = [one.where for one in wanted if one.reach is sources.Reach.TAIL]
        return not tails or any(self.world.disk.stat(path) is not None for path in tails)

    def _server(self, agent: Member, backend: Backend) -> tuple[int, str]:
        """A port for the run's own server and the file of its password; 0: none, or the user's own."""
        chosen = backend.server or backend.attach or backend.port_flag.split(" ")[0] in backend.flags.split()
        port = self.world.http.free_port() if backend.port_flag and not chosen else 0
        if not port or not backend.server_key_env:
            return port, ""
        key = self.house.path(f"key-{agent.session}")
        self.world.disk.write(key, f"{self.world.draw()}\n".encode(), sync=False)
        return port, key

    # --- everything else ----------------------------------------------------------------------------

    def act(self, action: Action, message: Message | None = None) -> Result:
        """One effect on a run that is there."""
        match action:
            case Paste():
                return self._paste(action, message)
            case Press():
                return self._press(action)
            case Post():
                return self._post(action, message)
            case Keep():
                return self._keep(action)
            case Unpause():
                return self._unpause(action)
            case LearnId():
                return self._learn_id(action)
            case Start() | Signal() | Remove():
                raise AssertionError("starts and ends go in batches, through start() and end()")

    def _noted(self, effect: str, agent: str, run: str, cause: str, do: Callable[[], str]) -> Result:
        """The cause on record, then the effect."""
        self.world.point(f"{effect}.begun")
        self.house.events.begin([Begun(effect, agent, run, cause)])
        self.world.point(effect)
        try:
            why = do()
            result = Result(Outcome.STALE, why) if why else Result(Outcome.DONE)
        except Unavailable as error:
            result = Result(Outcome.UNKNOWN, str(error))
        self.world.point(f"{effect}.done")
        return result

    def end(
        self, actions: Sequence[Signal | Remove], *, thorough: bool = False, noted: bool = True
    ) -> list[Result]:
        """Signals to runs, and sessions to take away: all causes on record first, with one flush.

        With `thorough`, processes that hand a run on faster than a look takes are met, too.
        """
        signals = [a for a in actions if isinstance(a, Signal)]
        removals = [a for a in actions if isinstance(a, Remove)]
        done = self._end_runs(signals, noted=noted) if signals else {}
        if removals:
            done |= self._end_sessions(removals, thorough=thorough, noted=noted)
        return [done[a] for a in actions]

    def _end_runs(self, actions: Sequence[Signal], *, noted: bool) -> dict[Signal | Remove, Result]:
        if noted:
            self._begin("signal", [(a.agent, a.run, a.cause) for a in actions])
        done = self._signal(actions)
        killed = [(a.pid, a.run) for a in actions if a.signum == signal.SIGKILL]
        if killed:
            self.world.processes.chase(killed)
        self.world.point("signal.done")
        return done

    def _end_sessions(
        self, actions: Sequence[Remove], *, thorough: bool, noted: bool
    ) -> dict[Signal | Remove, Result]:
        if noted:
            self._begin("remove", [(a.agent, a.ref.run, a.cause) for a in actions])
        if thorough:
            self.world.processes.chase([(0, a.ref.run) for a in actions])
        done = self._remove(actions)
        self.world.point("remove.done")
        return done

    def _begin(self, effect: str, said: Sequence[tuple[str, str, str]]) -> None:
        self.world.point(f"{effect}.begun")
        self.house.events.begin([Begun(effect, agent, run, cause) for agent, run, cause in said])
        self.world.point(effect)

    def _signal(self, actions: Sequence[Signal]) -> dict[Signal | Remove, Result]:
        table = self.world.processes
        try:
            found = table.sweep([(a.pid, a.run) for a in actions])
            for action in actions:
                table.signal(found[action.pid, action.run], action.signum)
        except Unavailable as error:
            return dict.fromkeys(actions, Result(Outcome.UNKNOWN, str(error)))
        return dict.fromkeys(actions, Result(Outcome.DONE))

    def _remove(self, actions: Sequence[Remove]) -> dict[Signal | Remove, Result]:
        try:
            said = self.world.tmux.remove([a.ref for a in actions], keeping=True)
        except Unavailable as error:
            return dict.fromkeys(actions, Result(Outcome.UNKNOWN, str(error)))
        whys = {a: said.get(a.ref.session, "tmux did not say") for a in actions}
        return {a: Result(Outcome.STALE if why else Outcome.DONE, why) for a, why in whys.items()}

    def _unpause(self, action: Unpause) -> Result:
        if action.run:
            self._begin("signal", [(action.agent, action.run, action.cause)])
            table = self.world.processes
            table.signal(table.members(action.pid, action.run), signal.SIGCONT)
        wall = self.world.clock.wall()
        left = self.house.desired.update(lambda d: d.end_pauses([action.agent], wall))
        entry = left.entries.get(action.agent)
        if entry is None or entry.paused or entry.frozen:
            return Result(Outcome.STALE, "the operator wants it paused by now")
        return Result(Outcome.DONE)

    def _learn_id(self, action: LearnId) -> Result:
        """The id, and the run that it belongs to, for the next start."""
        self.house.store.write_text(f"{action.agent}.id", action.conversation + "\n")
        run = self.records.run(action.session)
        if run is not None and run.id == action.run:
            self.records.save_run(run._replace(conversation=action.conversation))
        return Result(Outcome.DONE)

    def _paste(self, action: Paste, message: Message | None) -> Result:
        if message is None:
            return Result(Outcome.STALE, "the message is not in the outbox any more")
        try:
            text = self.text_of(action.agent, message)
        except OSError as error:
            return Result(Outcome.IMPOSSIBLE, f"{message.file}: {error.strerror}")
        given = prepared(text, action.rules)
        if given.refused:
            return Result(Outcome.IMPOSSIBLE, given.refused)

        def paste() -> str:
            return self._stranger(action) or self.world.tmux.paste(action.ref, given.text)

        return self._noted("paste", action.agent, action.ref.run, action.cause, paste)

    def _press(self, action: Press) -> Result:
        def press() -> str:
            return self._stranger(action) or self.world.tmux.press(action.ref, action.keys)

        return self._noted("press", action.agent, action.ref.run, action.cause, press)

    def _post(self, action: Post, message: Message | None) -> Result:
        run, box = self.records.run(action.ref.session), sources.mailbox(action.backend)
        mail = self.mail
        assert mail is not None, "only a supervisor posts"
        if message is None or run is None or run.id != action.ref.run or box is None:
            return Result(Outcome.STALE, "the message or the run is not there any more")
        try:
            text = self.text_of(action.agent, message)
        except OSError as error:
            return Result(Outcome.IMPOSSIBLE, f"{message.file}: {error.strerror}")
        name = box.name(message.id, message.at_wall)
        send, body, look = box.letter(action.server, action.conversation, name, text)
        key = server_key(self.world, self.house, action.ref.session, run, action.backend)

        def post() -> str:
            mail.send(Letter(message.id, send, body, look, key, again=message.enters > 1))
            return ""

        return self._noted("post", action.agent, action.ref.run, action.cause, post)

    def _stranger(self, action: Paste | Press) -> str:
        """The agent may have left its pane to a shell since it was seen: then nothing is typed."""
        if not action.expects:
            return ""
        self.world.processes.begin_look()  # the look's own reading is of before
        tree = self.world.processes.tree(action.ref.pid)
        there = any(action.expects in {p.name, p.exe} for p in tree)
        return "" if there else f"{action.expects} is not in the pane any more"

    def text_of(self, agent: str, message: Message) -> str:
        """The words of a message, from its document or its file where they are not known yet."""
        if message.long:
            return self.house.outbox.text_of(agent, message.id)
        if message.text or not message.file:
            return message.text
        return self.world.disk.read(message.file, 8 << 20).decode("utf-8", "replace").rstrip("\n")

    def _keep(self, action: Keep) -> Result:
        try:
            screen = self.world.tmux.capture([action.ref]).get(action.ref.session)
        except Unavailable as error:
            return Result(Outcome.STALE, str(error))
        if screen is None:
            return Result(Outcome.STALE, "the pane is gone")
        self.world.disk.make_dir(self.house.path("unread"))
        self.world.disk.write(
            self.house.path(f"unread/{action.ref.session}.txt"), screen.encode(), sync=False
        )
        return Result(Outcome.DONE)


def fingerprint(fleet: Fleet, member: Member) -> str:
    """The facts of a member's declaration, to be kept with its run."""
    m, backend = member, fleet.backend_of(member)
    facts = (m.model, m.backend, m.dir, m.env, backend.bin, backend.flags, m.role, m.command)
    return json.dumps(to_plain(facts), separators=(",", ":"))


def drift_between(then: str, now: str) -> tuple[str, ...]:
    """The facts in which two fingerprints differ."""
    pairs = zip(FACTS, json.loads(then), json.loads(now), strict=False)  # an older run may have kept fewer
    return tuple(name for name, was, is_now in pairs if was != is_now)


def digest(text: str) -> str:
    """By which a kickoff is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _uuid(digits: str) -> str:
    """A version-4 UUID from 32 random hex digits."""
    d = f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:32]}"
    return f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}"
