"""The hand that carries out the schedule: each kind of fault is one small method.

What a person or fate did is told to the oracles, because acts may rightly follow from it. Nothing here looks
at the watchdog; it is killed, stopped and doubled through `Stage`, which the simulation implements.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random
from typing import Protocol

from fleet.config import ConfigError, parse
from fleet.ports import Hint
from tests.sim.agents import SimAgent
from tests.sim.children import SimChildren
from tests.sim.declared import CONFIG, LOG_DIR, Declared, programs_of, toml
from tests.sim.faults import Fault
from tests.sim.loop_oracles import LoopOracles
from tests.sim.machine import Machine, SimMember
from tests.sim.names import INBOXES, PHASES
from tests.sim.oracles import Oracles
from tests.sim.repo import REPO
from tests.sim.sources import transcript_of
from tests.sim.work import Work


def _is_readable(text: str) -> bool:
    """A valid file with another pattern or account in it: then the oracles would ask for what nobody said."""
    try:
        parse(text, CONFIG, is_file=lambda _path: True)
    except ConfigError:
        return False
    return True


def _kill(rng: Random) -> int:
    """At which port call the operator's verb is killed; mostly at none."""
    return rng.randrange(1, 200) if rng.random() < 0.15 else 0


def _has_file(agent: SimAgent) -> bool:
    """Does it keep its conversation in a file, and has it begun one?"""
    return (agent.persona.transcript or agent.persona.rollout) and bool(agent.conversation)


class Stage(Protocol):
    """What the simulation lets the nemesis do to the supervisor and through its verbs."""

    def kill_watchdog(self, down_for: float) -> None: ...

    def stop_watchdog(self, seconds: float) -> None: ...

    def verb(self, name: str, agents: list[str], rng: Random, kill: int = 0) -> object: ...

    def type_words(
        self, words: tuple[str, ...], agents: list[str], rng: Random, *, kill: int = 0
    ) -> object: ...

    # of a fleet with a loop
    work: Work | None
    loop: LoopOracles | None
    children: SimChildren | None

    def set_phase(self, index: int | None, rng: Random, kill: int = 0) -> None: ...


class Nemesis:
    """One seed's faults."""

    def __init__(self, machine: Machine, oracles: Oracles, stage: Stage, declared: list[Declared]) -> None:
        self.machine = machine
        self.oracles = oracles
        self.stage = stage
        self.declared = declared  # the last version that was meant
        self.signal, self.heavy = 30.0, 300.0
        self.struck: dict[str, int] = {}
        self.over = False

    def strike(self, fault: Fault) -> None:
        """Now, or armed for a port call of a coming tick."""
        if self.over:
            return
        if fault.call:
            self.machine.arm(fault.call, lambda: self._do(fault))
        else:
            self._do(fault)

    def _do(self, fault: Fault) -> None:
        if self.over:
            return
        self.struck[fault.kind] = self.struck.get(fault.kind, 0) + 1
        actor, self.machine.actor = self.machine.actor, "nemesis"
        try:
            getattr(self, fault.kind)(Random(fault.salt))
        finally:
            self.machine.actor = actor

    def peace(self) -> None:
        """No more faults, and whatever was broken on purpose is mended."""
        self.over = True
        self.machine.armed.clear()
        self.machine.disk.fault = self.machine.disk.fails_in = 0
        self.machine.deaf = self.machine.sources.lost = False
        self.machine.sources.trouble = ""
        self.machine.partial = 0
        self.machine.disk.without.clear()
        self.machine.tmux.unhang()
        if self.stage.work is not None:
            self.stage.work.repo.offline = self.stage.work.repo.locked = False
        if self.stage.children is not None:
            self.stage.children.trouble = ""
        for agent in self.machine.living():
            agent.human_finishes()
        server = self.machine.tmux.server
        for session in list(server.sessions.values()) if server else []:
            session.in_mode = False
            if not session.project:
                self.machine.tmux.close(session)
        self._save(toml(self.declared, signal=self.signal, heavy=self.heavy))

    def _one(self, rng: Random) -> SimMember:
        return rng.choice(self._all())

    def _all(self) -> list[SimMember]:
        """Whom a person's verbs are about; the task at the end is the loop's to start."""
        return [m for m in self.machine.members.values() if m.kind != "task"]

    # -- agents and people

    def agent_kill(self, rng: Random) -> None:
        """One agent dies of a signal."""
        if living := self.machine.living():
            rng.choice(living).die(signum=9)

    def agent_massacre(self, _rng: Random) -> None:
        """All of them at once."""
        for agent in self.machine.living():
            agent.die(signum=9)

    def child_kill(self, rng: Random) -> None:
        """A helper process of somebody's goes."""
        children = [p for p in self.machine.table.by_pid.values() if p.name == "helper"]
        if children:
            self.machine.table.end(rng.choice(children), signum=9)

    def binary_missing(self, rng: Random) -> None:
        """An upgrade takes a program away for a while."""
        self._take_program(self._one(rng).name, rng.uniform(60, 3600))

    def _take_program(self, name: str, seconds: float) -> None:
        """The directory in which that agent's PATH finds its program is empty for a while."""
        without, folder = self.machine.disk.without, programs_of(name)
        without.add(folder)
        self.machine.clock.after(seconds, lambda: without.discard(folder))

    def upgrade(self, rng: Random) -> None:
        """The machine is busy, tmux does not answer, and under that an agent and its program go away."""
        self.machine.tmux.hang()
        self.machine.clock.after(15.0, self.machine.tmux.unhang)
        if living := self.machine.living():
            agent = rng.choice(living)
            self._take_program(agent.name, 600)
            self.machine.clock.after(8.0, lambda: agent.die(signum=15))

    def user_draft(self, rng: Random) -> None:
        """Somebody begins a sentence and finishes it later, or not."""
        if living := self.machine.living():
            agent = rng.choice(living)
            agent.human_types("please also look at")
            self.machine.clock.after(rng.uniform(5, 900), agent.human_finishes)

    def user_copy_mode(self, rng: Random) -> None:
        """Somebody scrolls back for a while."""
        if living := self.machine.living():
            session = rng.choice(living).session
            session.in_mode = True
            self.machine.clock.after(rng.uniform(5, 1200), lambda: setattr(session, "in_mode", False))

    def user_kills_session(self, rng: Random) -> None:
        """kill-session by hand, without telling us."""
        if living := self.machine.living():
            self.machine.tmux.close(rng.choice(living).session)

    def user_renames(self, rng: Random) -> None:
        """rename-session by hand, and back again after a while."""
        if living := self.machine.living():
            agent = rng.choice(living)
            name = agent.session.name
            self.machine.tmux.rename(agent.session, f"mine{rng.randrange(100)}")
            self.machine.clock.after(rng.uniform(60, 3600), lambda: self._rename_back(agent.session, name))

    def _rename_back(self, session, name: str) -> None:
        server = self.machine.tmux.server
        if server is not None and server.sessions.get(session.name) is session:
            self.machine.tmux.rename(session, name)

    def user_session(self, rng: Random) -> None:
        """Sessions of the user's own beside ours, some with names much like ours."""
        if self.machine.tmux.server is None or self.machine.tmux.server.hung:
            return
        name = rng.choice(("work", "sim-", "sim-a", "sim-a10", f"sim-{self._one(rng).name}"))
        if name not in self.machine.tmux.server.sessions:
            session = self.machine.tmux.open(name, "bash")
            self.machine.clock.after(rng.uniform(60, 7200), lambda: self.machine.tmux.close(session))

    # -- tmux

    def server_kill(self, _rng: Random) -> None:
        """SIGKILL to the server."""
        self.oracles.excuses.server_lost = self.machine.clock.t
        self.machine.tmux.kill_server()

    def server_hang(self, rng: Random) -> None:
        """SIGSTOP to the server, SIGCONT later; somebody sees that nothing moves and resets everybody."""
        self.machine.tmux.hang()
        self.machine.clock.after(rng.choice((3.0, 20.0, 300.0)), self.machine.tmux.unhang)
        if rng.random() < 0.3:
            everybody = self._all()
            self.machine.clock.after(2.0, lambda: self.over or self._verb("reset", everybody, rng))

    def tmux_partial(self, rng: Random) -> None:
        """The next answers end early."""
        self.machine.partial = rng.choice((2, 2, 4, 11))

    def tmux_deaf(self, rng: Random) -> None:
        """Death notices get lost for a while; only looking tells."""
        self.machine.deaf = True
        self.machine.clock.after(rng.uniform(60, 3600), lambda: setattr(self.machine, "deaf", False))

    def hooks_lost(self, rng: Random) -> None:
        """What agents report by themselves does not arrive for a while."""
        sources = self.machine.sources
        sources.lost = True
        self.machine.clock.after(rng.uniform(60, 3600), lambda: setattr(sources, "lost", False))

    def servers_trouble(self, rng: Random) -> None:
        """The servers of agents stand still, fail, or another user listens in their place."""
        sources = self.machine.sources
        sources.trouble = rng.choice(("stalls", "faults", "stranger"))
        self.machine.clock.after(rng.uniform(10, 1800), lambda: setattr(sources, "trouble", ""))

    def hooks_garbled(self, rng: Random) -> None:
        """An agent leaves something in its spool that is no report, or no file at all."""
        if not (living := [a for a in self.machine.living() if a.persona.hooks]):
            return
        path = f"{LOG_DIR}/state/signals/{rng.choice(living).session.name}/hook-{rng.randrange(10**6)}.json"
        what = rng.choice((b"[" * 100_000, b"\xff\xfe{", b"{}" * 10, b"1e999999", b"", "pipe", None))
        if what is None:
            with suppress(OSError):  # a full disk
                self.machine.disk.make_dir(path)
        elif what == "pipe":
            self.machine.disk.put_pipe(path)
        else:
            self.machine.disk.put(path, what)
        self.machine.wake(Hint.SIGNALS)

    def transcript_broken(self, rng: Random) -> None:
        """A line that is no record, half a line, an empty file, or for a while no file at all."""
        if not (living := [a for a in self.machine.living() if _has_file(a)]):
            return
        path, disk = transcript_of(rng.choice(living)), self.machine.disk
        old = bytes(disk.files[path].data) if path in disk.files else b""
        what = rng.choice((b"[" * 100_000 + b"\n", b"\xff\xfe{\n", b'{"type": "assist', b"", "pipe", None))
        if what is None:
            if path in disk.files:
                disk.unlink(path)
            disk.dirs.add(path)
            self.machine.clock.after(rng.uniform(60, 3600), lambda: disk.dirs.discard(path))
        elif what == "pipe":  # the CLI finds its file broken, and begins a new one some time
            disk.put_pipe(path)
            self.machine.clock.after(rng.uniform(60, 3600), lambda: disk.put(path, old))
        else:
            disk.put(path, old + what if what else b"")

    # -- the supervisor and its machine

    def crash(self, rng: Random) -> None:
        """SIGKILL to the watchdog, wherever it is."""
        self.stage.kill_watchdog(rng.choice((0.5, 5.0, 60.0)))

    def crash_loop(self, rng: Random) -> None:
        """It is killed again and again, each time a little further on."""
        for number in range(30):
            self.machine.arm(rng.randrange(5, 25) * (number + 1), lambda: self.stage.kill_watchdog(0.2))

    def stopped(self, rng: Random) -> None:
        """SIGSTOP to the watchdog."""
        self.stage.stop_watchdog(rng.choice((5.0, 60.0, 600.0, 3600.0)))

    def reboot(self, rng: Random) -> None:
        """Power cut."""
        self.oracles.excuses.host_lost = self.machine.clock.t
        self.machine.disk.fault = 0
        self.machine.reboot()
        self.stage.kill_watchdog(rng.choice((20.0, 200.0)))

    def clock_jump(self, rng: Random) -> None:
        """Somebody sets the wall clock."""
        self._set(rng.choice((-1, 1)) * rng.choice((1.0, 60.0, 3600.0, 86_400.0, 3e7)))

    def suspend(self, rng: Random) -> None:
        """The lid is closed: nobody runs, only the wall clock goes on."""
        self._jump(rng.choice((60.0, 3600.0, 8 * 3600.0)))

    def zone_night(self, _rng: Random) -> None:
        """The wall clock is set to an hour before the next change of summer time."""
        self._set(3600.0)

    def _set(self, seconds: float) -> None:
        """Ours is set; the provider's clock, by which it refuses, goes on as before."""
        for account in {id(m.account): m.account for m in self.machine.members.values()}.values():
            account.until += seconds if account.until else 0.0
        self._jump(seconds)

    def _jump(self, seconds: float) -> None:
        self.oracles.excuses.jumped = self.machine.clock.t
        self.machine.clock.jump(seconds)

    # -- disk

    def _disk(self, code: int, seconds: float) -> None:
        self.machine.disk.fault = code

        def mend() -> None:
            if self.machine.disk.fault == code:
                self.machine.disk.fault = 0

        self.machine.clock.after(seconds, mend)

    def disk_full(self, rng: Random) -> None:
        """No space left for a while, or only a little, or now and then a block."""
        self._disk(errno.ENOSPC, rng.choice((5.0, 60.0, 1800.0)))
        self.machine.disk.room = rng.choice((None, 0, 700, 9000))

    def disk_read_only(self, rng: Random) -> None:
        """Remounted read-only for a while."""
        self._disk(errno.EROFS, rng.choice((5.0, 60.0, 1800.0)))

    def disk_error(self, rng: Random) -> None:
        """One write somewhere fails."""
        self.machine.disk.fails_in = rng.randrange(1, 20)

    # -- config

    def _save(self, text: str) -> None:
        self.machine.disk.put(CONFIG, text.encode(), 0o644)

    def _garble(self, text: str, seconds: float) -> None:
        self._save(text)
        self.machine.clock.after(seconds, self._mend_config)

    def _mend_config(self) -> None:
        self._save(toml(self.declared, signal=self.signal, heavy=self.heavy))

    def config_garbled(self, rng: Random) -> None:
        """A save that went wrong, put right later. One that can be read is another wish instead."""
        text = garbled = toml(self.declared)
        while _is_readable(garbled):
            at = rng.randrange(len(text))
            garbled = text[:at] + rng.choice(("=", "[[", '"', "\x00", "}}")) + text[at + 1 :]
        self._garble(garbled, rng.uniform(1, 1200))

    def config_cut(self, rng: Random) -> None:
        """An editor truncates first and writes after; sometimes it takes a break in between."""
        text = toml(self.declared)
        self._garble(text[: rng.randrange(len(text))], rng.choice((0.5, 0.5, 30.0, 50.0)))

    def config_shrunk(self, rng: Random) -> None:
        """More than half of the agents are gone from the file, for less than a minute."""
        self._garble(toml(self.declared[: len(self.declared) // 3]), rng.uniform(5, 55))

    def config_edited(self, rng: Random) -> None:
        """A proper edit: other intervals."""
        self.signal = rng.choice((15.0, 30.0, 60.0))
        self.heavy = rng.choice((120.0, 300.0))
        self._mend_config()

    # -- the loop

    def repo_offline(self, rng: Random) -> None:
        """The remote cannot be reached for a while."""
        self._repo("offline", rng.choice((30.0, 600.0, 7200.0)))

    def repo_locked(self, rng: Random) -> None:
        """A git that was killed left its lock on the tracking ref; somebody removes it later."""
        self._repo("locked", rng.choice((30.0, 600.0, 7200.0)))

    def _repo(self, what: str, seconds: float) -> None:
        repo = self.stage.work.repo
        setattr(repo, what, True)
        self.machine.clock.after(seconds, lambda: setattr(repo, what, False))

    def children_hang(self, rng: Random) -> None:
        """Whatever is started now does not come back."""
        self._children("hang", rng.uniform(10, 600))

    def children_refused(self, rng: Random) -> None:
        """No process can be started for a while."""
        self._children("refuse", rng.uniform(10, 600))

    def _children(self, trouble: str, seconds: float) -> None:
        if (children := self.stage.children) is not None:
            children.trouble = trouble
            self.machine.clock.after(seconds, lambda: setattr(children, "trouble", ""))

    def inbox_message(self, rng: Random) -> None:
        """Somebody leaves a file for a side of the loop, which takes it away later."""
        path = f"{REPO}/{rng.choice(INBOXES)}"
        self.stage.loop.left(path)
        self.machine.disk.put(path, f"Please see to {rng.randrange(10**6)}.\n".encode())
        self.machine.wake(Hint.LOOP)
        gone = self.machine.disk.unlink
        self.machine.clock.after(
            rng.uniform(60, 7200), lambda: path in self.machine.disk.files and gone(path)
        )

    def done_trigger(self, _rng: Random) -> None:
        """Somebody asks for the task at the end."""
        self.stage.loop.trigger()

    def op_phase_set(self, rng: Random) -> None:
        """A person goes to another phase, forward or back."""
        self.stage.set_phase(rng.randrange(len(PHASES)), rng, _kill(rng))

    def op_phase_next(self, rng: Random) -> None:
        """A person does not want to wait."""
        self.stage.set_phase(None, rng, _kill(rng))

    # -- the operator

    def _verb(self, name: str, members: list[SimMember], rng: Random) -> None:
        if members:
            self.stage.verb(name, [m.name for m in members], rng, _kill(rng))

    def op_down(self, rng: Random) -> None:
        self._verb("down", [self._one(rng)], rng)

    def op_up(self, rng: Random) -> None:
        self._verb("up", [self._one(rng)], rng)

    def op_down_all(self, rng: Random) -> None:
        self._verb("down_all", self._all(), rng)
        self.machine.clock.after(rng.uniform(10, 3600), lambda: self.over or self.op_up_all(rng))

    def op_up_all(self, rng: Random) -> None:
        self._verb("up_all", self._all(), rng)

    def op_restart(self, rng: Random) -> None:
        self._verb("restart", [self._one(rng)], rng)

    def op_restart_fresh(self, rng: Random) -> None:
        self._verb("restart_fresh", [self._one(rng)], rng)

    def op_watchdog(self, rng: Random) -> None:
        """A person stops the watchdog, starts it, or both."""
        self.stage.type_words((rng.choice(("down", "up", "restart")), "watchdog"), [], rng, kill=_kill(rng))

    def op_pause(self, rng: Random) -> None:
        self._verb("pause", [self._one(rng)], rng)

    def op_pause_until(self, rng: Random) -> None:
        self._verb("pause_until", [self._one(rng)], rng)

    def op_unpause(self, rng: Random) -> None:
        self._verb("unpause", [m for m in self._all() if m.paused][:1], rng)

    def op_freeze(self, rng: Random) -> None:
        self._verb("freeze", [self._one(rng)], rng)

    def op_thaw(self, rng: Random) -> None:
        self._verb("thaw", [m for m in self._all() if m.frozen], rng)

    def op_reset(self, rng: Random) -> None:
        self._verb("reset", [self._one(rng)], rng)

    def op_gives_up(self, rng: Random) -> None:
        """Whoever does not run, whatever the watchdog thinks of it, is taken down, and forgiven later."""
        gone = [m for m in self._all() if m.agent is None or not m.agent.alive]
        if gone:
            one = rng.choice(gone)
            self._verb("down", [one], rng)
            self.machine.clock.after(60.0, lambda: self.over or self._verb("reset", [one], rng))

    def op_send(self, rng: Random) -> None:
        self._verb("send", [self._one(rng)], rng)
