"""A thousand operations among sessions that are called almost like ours, on the very same server.

tmux finds a session by the beginning of its name when exactly one fits, and by a window's name before
that. So every session of ours has one look-alike that such a search would find as soon as ours is not
there, and one stranger's window bears each of our names. All of it runs in this process, verbs included,
so that the one function which spells a target can be broken on purpose: then the strangers must suffer.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from fleet import config
from fleet.core.seen import PaneRef
from fleet.host.tmux import language, pane_rows
from fleet.ports import Launch
from fleet.supervisor.operator import Operator
from tests.tmux.inside import verb
from tests.tmux.project import Project

pytestmark = [pytest.mark.tmux, pytest.mark.long]

OPERATIONS = 1000
OURS = ("build", "run", "x", "test", "test-2")  # the last two are each other's danger
LOOKALIKES = ("builder", "runner-2", "x_", "te", "test-22")
DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'
WITNESS = "#{session_name} #{window_name} #{pane_pid} #{pane_dead} #{pane_pipe} [#{@ao_project}#{@ao_run}]"


class Hurt(AssertionError):
    """Somebody was touched who is none of ours."""


@dataclass
class Arena:
    """Our fleet, the strangers around it, and what may be done."""

    project: Project
    rng: random.Random
    fleet: object = None
    refs: list[PaneRef] = field(default_factory=list)  # every pane of ours that ever was
    before: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        p = self.project
        p.write("".join(DEMO.format(name) for name in OURS))
        self.fleet = config.load(str(p.config))
        self.verb("up", *OURS, "--no-wait")
        self.remember()
        for name in (*LOOKALIKES, ""):
            self.settle(f"{p.prefix}{name}")
        self.settle(p.prefix.rstrip("-"))
        self.settle(f"{pane_rows.anchor(self.fleet.project_id)}-2")
        for name in OURS:  # where a bare name is looked for first: in the windows of the newest session
            p.tmux("new-window", "-d", "-t", f"={p.prefix}:", "-n", f"{p.prefix}{name}", "cat")
        self.before = self.strangers()
        assert len(self.before) == len(LOOKALIKES) + 3 + len(OURS)

    def settle(self, session: str) -> None:
        """A stranger who would show every key that was meant for somebody else."""
        self.project.tmux("new-session", "-d", "-s", session, "-n", "w", "cat")

    def strangers(self) -> list[str]:
        ours = {f"{self.project.prefix}{name}" for name in OURS}
        rows = self.project.tmux("list-panes", "-a", "-F", WITNESS).splitlines()
        return sorted(row for row in rows if row.split()[0] not in ours)

    def verb(self, *words: str) -> object:
        return verb(self.project.config, *words)

    def operate(self, times: int) -> None:
        for _ in range(times):
            self.step()

    def step(self) -> None:
        kind = self.rng.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
        name = self.rng.choice(OURS)
        self.history.append(f"{kind} {name}")
        self.done[kind] = self.done.get(kind, 0) + 1
        operator = Operator(self.fleet)
        KINDS[kind][1](self, operator, name)
        if kind in {"up", "restart"}:
            self.remember()
        if (now := self.strangers()) != self.before:
            raise Hurt(f"{self.history[-20:]}:\n" + "\n".join(sorted({*now} ^ {*self.before})))

    def remember(self) -> None:
        self.refs += [p.ref for p in Operator(self.fleet).listing().panes if p.ref not in self.refs]

    def ref(self) -> PaneRef:
        """A pane of ours, mostly one that is no more."""
        return self.rng.choice(self.refs)

    def show(self, operator: Operator, name: str) -> None:
        """What is not there has no screen: least of all somebody else's."""
        session = f"{self.project.prefix}{name}"
        there = session in self.project.tmux("list-sessions", "-F", "#{session_name}").split()
        if operator.server.screen(session).strip() and not there:
            raise Hurt(f"{session} is not there, and was shown")

    def create(self, operator: Operator, name: str) -> None:
        session, run = f"{self.project.prefix}{name}", f"decoy{len(self.history)}"
        launch = Launch(session, operator.house.path(f"launch-{session}.sh"), run, f"{session}.log", {})
        operator.server.create([launch])

    def lose(self, name: str) -> None:
        """Ours dies, or its session goes, without our doing."""
        if self.rng.random() < 0.5 and (pid := self.project.pid(name)):
            os.kill(pid, signal.SIGKILL)
        else:
            self.project.tmux("kill-session", "-t", f"={self.project.prefix}{name}:")


def _verb(*words: str) -> Callable[[Arena, Operator, str], object]:
    return lambda arena, _operator, name: arena.verb(words[0], name, *words[1:])


KINDS: dict[str, tuple[int, Callable[[Arena, Operator, str], object]]] = {
    "up": (8, _verb("up", "--no-wait")),
    "down": (3, _verb("down")),
    "restart": (2, _verb("restart", "--no-wait")),
    "pause": (3, _verb("pause")),
    "unpause": (3, _verb("unpause")),
    "reset": (3, _verb("reset")),
    "send": (1, _verb("send", "words for nobody else", "--timeout", "0.1")),
    "status": (3, lambda arena, *_: arena.verb("status", "--json")),
    "explain": (1, _verb("explain")),
    "attach": (2, _verb("attach", "--print")),
    "down of all": (1, lambda arena, *_: arena.verb("down")),
    "lose": (12, lambda arena, _operator, name: arena.lose(name)),
    "create": (14, lambda arena, operator, name: arena.create(operator, name)),
    "screen": (24, lambda arena, operator, name: arena.show(operator, name)),
    "remove": (24, lambda arena, operator, _: operator.server.remove([arena.ref()])),
    "paste": (24, lambda arena, operator, _: operator.server.paste(arena.ref(), "rm -r $(words)")),
    "press": (24, lambda arena, operator, _: operator.server.press(arena.ref(), ["C-c"])),
    "retire": (8, lambda _arena, operator, _name: operator.server.retire()),
}


@pytest.fixture
def arena(make) -> Arena:
    seed = int(os.environ.get("AOTEST_SEED", "0")) or random.randrange(1, 1 << 32)
    print(f"AOTEST_SEED={seed}")  # shown when it fails
    return Arena(make(), random.Random(seed))


def test_lookalikes_survive_a_thousand_operations(arena):
    """I2, T21, T23."""
    arena.operate(OPERATIONS)
    assert sum(arena.done.values()) == OPERATIONS
    assert set(arena.done) == set(KINDS)
    arena.verb("down")
    assert arena.strangers() == arena.before
    assert not arena.project._carried()


@pytest.mark.parametrize("spelling", ["{}", "{}:"])
def test_with_any_other_spelling_of_a_target_they_would_not(arena, monkeypatch, spelling):
    """T1, T6: they really are in danger: a spelling that is less than exact hurts somebody soon."""
    monkeypatch.setattr(language, "exact", lambda session: spelling.format(language.name(session)))
    with pytest.raises(Hurt):
        arena.operate(OPERATIONS)
