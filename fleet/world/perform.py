"""Carry out actions, verbs' and watchdog's alike: look again, put the intent on record, act, say how it went.

What is expected and not found is STALE: nothing is done, and the next look decides anew. Files that a
start needs are written before tmux is asked; what the operator wants is read once more in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from fleet.core.actions import Action, Keep, Paste, Post, Press, Remove, Signal, Start
from fleet.core.codec import to_plain
from fleet.core.kickoff import continue_line
from fleet.core.memory import Message, Run
from fleet.core.model import AgentSpec, Backend, Fleet, ServiceSpec
from fleet.core.rules.outbox import tail_of
from fleet.core.seen import PaneRef
from fleet.journal.intents import Intent
from fleet.world.launch import (
    ARGUMENT_CAP,
    agent_env,
    compose,
    compose_service,
    pointer,
    server_env,
    service_env,
)
from fleet.world.mail import Letter
from fleet.world.ports import Launch, Unavailable
from fleet.world.prompts import NoPrompt, prompt_for
from fleet.world.records import Records
from fleet.world.world import House, World

# Sessions made at once. A thousand in one breath would keep tmux from everybody else for half a minute.
BATCH = 20


@dataclass(frozen=True, slots=True)
class Order:
    """One start: whom, why, and what it takes the place of."""

    spec: AgentSpec | ServiceSpec
    cause: str
    replace: PaneRef | None = None
    resume: bool = True
    phase: str = ""
    planned: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """How an effect went. `stale`: the world had changed, nothing was done. `fatal`: a retry cannot help."""

    ok: bool
    why: str = ""
    stale: bool = False
    fatal: bool = False
    run: Run | None = None


@dataclass(slots=True)
class Ready:
    """A start with all its files written."""

    order: Order
    run: Run
    launch: Launch


@dataclass(slots=True)
class Performer:
    """Hands of the supervisor."""

    world: World
    house: House
    records: Records

    # --- starting -----------------------------------------------------------------------------------

    def start(self, fleet: Fleet, orders: Sequence[Order], wanted: Callable[[str], bool]) -> dict[str, Done]:
        """Start all of these in one batch; `wanted` is asked again at the last moment."""
        results: dict[str, Done] = {}
        with self.world.lock():
            try:
                names = self._inherited(fleet)
            except Unavailable as error:
                return {order.spec.name: Done(ok=False, why=f"unknown: {error}") for order in orders}
            ready: list[Ready] = []
            for order in orders:
                if not wanted(order.spec.name):
                    results[order.spec.name] = Done(ok=False, why="nobody wants it up any more", stale=True)
                    continue
                made = self._prepare(fleet, order, names)
                if isinstance(made, Done):
                    results[order.spec.name] = made
                else:
                    ready.append(made)
            results.update(self._create(ready))
        return results

    def _inherited(self, fleet: Fleet) -> frozenset[str]:
        """What a pane may find in its environment without being its own: the scripts take it out."""
        return frozenset(server_env(fleet, self.world.environ)) | self.world.tmux.environment_names()

    def _create(self, ready: list[Ready]) -> dict[str, Done]:
        if not ready:
            return {}
        self.world.point("start.intent")
        noted = [Intent("start", r.order.spec.name, r.run.id, r.order.cause) for r in ready]
        ids = self.house.intents.begin_all(noted)
        self.world.point("start.remove")
        old = [r.order.replace for r in ready if r.order.replace is not None]
        said: dict[str, str] = {}
        at = 0
        try:
            if old:
                self.world.tmux.remove(old)
            for at in range(0, len(ready), BATCH):
                self.world.point("start.create")
                said |= self.world.tmux.create([r.launch for r in ready[at : at + BATCH]])
        except Unavailable as error:
            asked, rest = ready[at : at + BATCH], ready[at + BATCH :]
            said |= {r.launch.session: f"unknown: {error}" for r in asked}
            said |= {r.launch.session: f"not tried: {error}" for r in rest}
        self.world.point("start.created")
        results: dict[str, Done] = {}
        for one, intent in zip(ready, ids, strict=True):
            why = said.get(one.launch.session, "tmux did not say")
            self.house.intents.end(intent, why or "started")
            if not why:
                self.house.events.record(
                    "agent.started",
                    agent=one.order.spec.name,
                    reason=one.order.cause,
                    run=one.run.id,
                    model=one.run.model,
                    phase=one.run.phase,
                    resumed=one.run.resumed,
                )
            results[one.order.spec.name] = Done(ok=not why, why=why, stale=why == "exists", run=one.run)
        return results

    def _prepare(self, fleet: Fleet, order: Order, server_names: frozenset[str]) -> Ready | Done:
        """Write everything the start needs; a Done says why it cannot be."""
        spec = order.spec
        identity = self.world.draw()[:16]
        env = _share(fleet, spec, self.world.environ)
        try:
            if isinstance(spec, ServiceSpec):
                script = compose_service(fleet, spec, run=identity, held=env, server_names=server_names)
                run = Run(
                    identity,
                    spec.session,
                    self.world.clock.wall(),
                    print=fingerprint(fleet, spec),
                    why=order.cause,
                )
            else:
                why = self.world.preflight(fleet, spec)
                if why:
                    return Done(ok=False, why=why, fatal=True)
                run, script = self._agent_files(fleet, spec, order, identity, env, server_names)
            path = self.house.path(f"launch-{spec.session}.sh")
            self.world.disk.write(path, script.encode("utf-8", "surrogateescape"), sync=False)
            self.records.save_run(run)
        except NoPrompt as error:
            return Done(ok=False, why=str(error), fatal=True)
        return Ready(order, run, Launch(spec.session, path, identity, f"{spec.session}.log", env))

    def _agent_files(
        self,
        fleet: Fleet,
        agent: AgentSpec,
        order: Order,
        identity: str,
        held: Collection[str],
        server_names: frozenset[str],
    ) -> tuple[Run, str]:
        backend = fleet.backend_of(agent)
        store = self.house.store
        known = (store.read_text(f"{agent.name}.id") or "").strip()
        can_resume = agent.resume and backend.supports_resume and bool(known)
        resume_id = known if can_resume and order.resume else ""
        if can_resume and not order.resume:
            self.world.disk.rename(
                self.house.path(f"{agent.name}.id"), self.house.path(f"{agent.name}.id.set-aside")
            )
        chosen = "" if resume_id or not backend.session_id_flag else _uuid(self.world.draw())
        if chosen:
            store.write_text(f"{agent.name}.id", chosen + "\n")
        model, prompt = prompt_for(self.world.disk, fleet, agent, order.phase)
        if resume_id:
            prompt = continue_line(order.phase)
        kickoff = self.house.path(f"kickoff-{agent.session}.txt")
        data = prompt.encode("utf-8", "surrogateescape")
        self.world.disk.write(kickoff, data, sync=False)
        typed = kickoff if prompt.strip() else ""
        if backend.prompt_delivery == "ping" and len(data) > ARGUMENT_CAP:
            prompt = pointer(kickoff)
            typed = self.house.path(f"pointer-{agent.session}.txt")
            self.world.disk.write(typed, prompt.encode("utf-8", "surrogateescape"), sync=False)
        signals = self.house.path(f"signals/{agent.session}")
        self.world.disk.make_dir(signals)
        settings = ""
        told: dict[str, object] = {}
        if backend.settings_flag:
            from fleet.backends.adapters import settings as hooks  # slow to load, and few backends have hooks

            told = hooks(backend)
        if told:
            settings = self.house.path(f"settings-{agent.session}.json")
            self.world.disk.write(settings, json.dumps(told).encode(), sync=False)
        program = ""
        if backend.notify_flag:
            from fleet.backends.adapters import notify

            program = notify(backend, signals)
        port, key = self._server(agent, backend)
        script = compose(
            fleet,
            agent,
            backend,
            run=identity,
            model=model,
            kickoff_file=kickoff,
            kickoff_bytes=len(data),
            resume_id=resume_id,
            session_id=chosen,
            settings_file=settings,
            signals_dir=signals,
            notify=program,
            port=port,
            key_file=key,
            held=held,
            server_names=server_names,
        )
        run = Run(
            identity,
            agent.session,
            self.world.clock.wall(),
            0,
            backend.name,
            model,
            order.phase,
            resume_id or chosen,
            bool(resume_id),
            backend.prompt_delivery,
            typed,
            tail_of(prompt[-400:]),
            fingerprint(fleet, agent),
            order.cause,
            f"http://127.0.0.1:{port}" if port else "",
        )
        return run, script

    def _server(self, agent: AgentSpec, backend: Backend) -> tuple[int, str]:
        """A port for the run's own server and the file of its password; 0: none, or the user's own."""
        chosen = backend.server or backend.attach or backend.port_flag.split(" ")[0] in backend.flags.split()
        port = self.world.port() if backend.port_flag and not chosen else 0
        if not port or not backend.server_key_env:
            return port, ""
        key = self.house.path(f"key-{agent.session}")
        self.world.disk.write(key, f"{self.world.draw()}\n".encode(), sync=False)
        return port, key

    # --- everything else ----------------------------------------------------------------------------

    def act(self, action: Action, message: Message | None = None) -> Done:
        """One effect on a run that is there."""
        match action:
            case Signal():
                return self._signal(action)
            case Remove():
                return self._noted(
                    "remove", action.agent, action.ref.run, action.cause, lambda: self._remove(action)
                )
            case Paste():
                return self._paste(action, message)
            case Press():
                return self._press(action)
            case Post():
                return self._post(action, message)
            case Keep():
                return self._keep(action)
            case Start():
                raise AssertionError("starts go in batches, through start()")

    def _noted(self, effect: str, agent: str, run: str, cause: str, do: Callable[[], str]) -> Done:
        """Intent on record, effect, outcome on record."""
        self.world.point(f"{effect}.intent")
        intent = self.house.intents.begin(effect, agent, run, cause)
        self.world.point(effect)
        try:
            why = do()
        except Unavailable as error:
            why = f"unknown: {error}"
        self.world.point(f"{effect}.done")
        self.house.intents.end(intent, why or "done")
        return Done(ok=not why, why=why, stale=bool(why))

    def _signal(self, action: Signal) -> Done:
        def send() -> str:
            members = self.world.processes.members(action.pid, action.run)
            self.world.processes.signal(members, action.signum)
            return ""

        return self._noted("signal", action.agent, action.run, action.cause, send)

    def _remove(self, action: Remove) -> str:
        return self.world.tmux.remove([action.ref]).get(action.ref.session, "tmux did not say")

    def _paste(self, action: Paste, message: Message | None) -> Done:
        if message is None:
            return Done(ok=False, why="the message is not in the outbox any more", stale=True)
        try:
            text = self.text_of(message)
        except OSError as error:
            return Done(ok=False, why=f"{message.file}: {error.strerror}", fatal=True)

        def paste() -> str:
            return self._stranger(action) or self.world.tmux.paste(action.ref, text)

        return self._noted("paste", action.agent, action.ref.run, action.cause, paste)

    def _press(self, action: Press) -> Done:
        def press() -> str:
            return self._stranger(action) or self.world.tmux.press(action.ref, action.keys)

        return self._noted("press", action.agent, action.ref.run, action.cause, press)

    def _post(self, action: Post, message: Message | None) -> Done:
        from fleet.backends import opencode_letters as letters  # the one server that takes letters
        from fleet.world.ears import server_key

        run = self.records.run(action.ref.session)
        if message is None or run is None or run.id != action.ref.run:
            return Done(ok=False, why="the message or the run is not there any more", stale=True)
        try:
            text = self.text_of(message)
        except OSError as error:
            return Done(ok=False, why=f"{message.file}: {error.strerror}", fatal=True)
        name = letters.name(message.id, message.at_wall)
        send, body, look = letters.letter(action.server, action.conversation, name, text)
        key = server_key(self.world, self.house, action.ref.session, run, action.key_env)

        def post() -> str:
            self.world.mail.send(Letter(message.id, send, body, look, key, again=message.enters > 1))
            return ""

        return self._noted("post", action.agent, action.ref.run, action.cause, post)

    def _stranger(self, action: Paste | Press) -> str:
        """The agent may have left its pane to a shell since it was seen: then nothing is typed."""
        if not action.expects:
            return ""
        tree = self.world.processes.tree(action.ref.pid)
        there = any(action.expects in {p.name, p.exe} for p in tree)
        return "" if there else f"{action.expects} is not in the pane any more"

    def text_of(self, message: Message) -> str:
        """The words of a message, from its file where they are not known yet."""
        if message.text or not message.file:
            return message.text
        return self.world.disk.read(message.file, 8 << 20).decode("utf-8", "replace").rstrip("\n")

    def _keep(self, action: Keep) -> Done:
        try:
            screen = self.world.tmux.capture([action.ref]).get(action.ref.session)
        except Unavailable as error:
            return Done(ok=False, why=str(error), stale=True)
        if screen is None:
            return Done(ok=False, why="the pane is gone", stale=True)
        self.world.disk.make_dir(self.house.path("unread"))
        self.world.disk.write(
            self.house.path(f"unread/{action.ref.session}.txt"), screen.encode(), sync=False
        )
        return Done(ok=True)


def _share(fleet: Fleet, spec: AgentSpec | ServiceSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """What of our environment this one may see: a pane is given its own share and no other's."""
    if isinstance(spec, ServiceSpec):
        return service_env(spec, environ)
    return agent_env(spec, fleet.backend_of(spec), environ)


def fingerprint(fleet: Fleet, spec: AgentSpec | ServiceSpec) -> str:
    """What of the declaration a running process cannot follow without a restart."""
    if isinstance(spec, ServiceSpec):
        facts: list[object] = [spec.command, spec.dir, spec.env]
    else:
        backend = fleet.backend_of(spec)
        facts = [spec.model, spec.backend, spec.dir, spec.env, backend.bin, backend.flags, spec.role]
    return json.dumps(to_plain(facts), separators=(",", ":"))


def _uuid(digits: str) -> str:
    """A version-4 UUID from 32 random hex digits."""
    d = f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:32]}"
    return f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}"
