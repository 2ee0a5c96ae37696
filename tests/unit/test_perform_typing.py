"""What is typed goes to the agent that was seen and to nobody else: by rule, and once more in the act."""

from __future__ import annotations

import subprocess

import pytest

from fleet.core.agent.receipts import receipts
from fleet.core.case import ProcView
from fleet.core.effects import Paste, Press
from fleet.core.queue import tail_of
from fleet.core.seen import Proc
from fleet.core.settle import take_back
from fleet.core.words import MessageState, Outcome
from fleet.host.processes import ProcTable
from fleet.supervisor.perform import Performer
from tests.records import replace
from tests.tmux.project import until
from tests.unit.cases import BACKEND, NOW, PANE, READY, REF, case, message, reading, seen

DECLARED = replace(BACKEND, screen=(("composer", "> (?P<draft>.*)"), ("folded", r"\[Pasted[^\]]*\]?")))
UNREAD = reading("unknown", draft=None)


def flying(status: MessageState, ago: float, **more):
    sent = replace(message(), status=status, run=REF.run, at=NOW.steady - ago, **more)
    return replace(READY, outbox=(sent,), state="unknown")


@pytest.mark.parametrize("ago", [0.5, 5.0, 500.0])
def test_no_enter_while_a_composer_that_should_be_there_is_not_to_be_seen(ago):
    """I7, I12: what stands there may be a person's."""
    verdict = receipts(case(flying(MessageState.TYPED, ago), backend=DECLARED, seen=seen(reading=UNREAD)))
    assert verdict.action is None
    assert not verdict.hold  # other rules may have an answer
    assert verdict.wake_at is not None


def test_a_backend_without_a_composer_is_submitted_to_on_trust():
    verdict = receipts(case(flying(MessageState.TYPED, 0.5), seen=seen(reading=UNREAD)))
    assert isinstance(verdict.action, Press)


def test_an_unreadable_screen_is_no_receipt():
    """I11: and no second Enter either; after a while it is said so."""
    memory = flying(MessageState.SUBMITTED, 2.0, enters=1)
    waiting = receipts(case(memory, backend=DECLARED, seen=seen(reading=UNREAD)))
    assert waiting.action is None
    assert not waiting.finished
    later = flying(MessageState.SUBMITTED, 9.0, enters=1)
    given_up = receipts(case(later, backend=DECLARED, seen=seen(reading=UNREAD)))
    assert given_up.finished[0].status is MessageState.FAILED


@pytest.mark.parametrize(("status", "enters"), [(MessageState.TYPED, 0), (MessageState.SUBMITTED, 1)])
def test_no_enter_for_another_program(status, enters):
    """I8: and it does not keep the rule that mends it from its turn."""
    stranger = ProcView(expected=False, shell_only=True)
    look = seen(reading=reading("idle", draft=message().text), proc=stranger)
    verdict = receipts(case(flying(status, 2.0, enters=enters), backend=DECLARED, seen=look))
    assert verdict.action is None


class Panes:
    """A tmux that remembers what was typed."""

    def __init__(self) -> None:
        self.typed: list[object] = []

    def paste(self, _ref, text):
        self.typed.append(text)
        return ""

    def press(self, _ref, keys):
        self.typed.append(keys)
        return ""


class Noted:
    """What was announced, in order, and how often the pane had been typed to by then."""

    def __init__(self, panes) -> None:
        self.panes, self.lines = panes, []

    def begin(self, effects):
        self.lines += [(one.effect, len(self.panes.typed)) for one in effects]


class Stage:
    """As much of a world as typing needs."""

    def __init__(self, *names: str) -> None:
        self.tmux, self.processes = Panes(), self
        self.events = Noted(self.tmux)
        self.names = names
        self.point = lambda _name: None

    def begin_look(self) -> None:
        """Each reading is new."""

    def tree(self, _pid):
        return tuple(Proc(pid=n, start=1, ppid=0, sid=1, name=x, exe="") for n, x in enumerate(self.names))


PASTE = Paste("a", REF, "send-1", "send", expects="tui")
PRESS = Press("a", REF, ("Enter",), "submit", "send-1", expects="tui")


@pytest.mark.parametrize("action", [PASTE, PRESS])
def test_the_act_itself_looks_once_more_who_is_in_the_pane(action):
    """I8: between the look and the key the agent may have left its terminal to a shell."""
    left = Stage("sh", "dd")
    done = Performer(left, left, None).act(action, message())
    assert (done.outcome, left.tmux.typed) == (Outcome.STALE, [])
    assert "tui is not in the pane" in done.why
    there = Stage("sh", "tui")  # a wrapper is no stranger
    assert Performer(there, there, None).act(action, message()).ok
    assert len(there.tmux.typed) == 1


@pytest.mark.parametrize("action", [PASTE, PRESS])
def test_who_is_in_the_pane_is_not_told_by_an_older_reading(action, monkeypatch):
    """I8: one reading serves for a tenth of a second, and in that time the agent may have left."""
    monkeypatch.setattr("fleet.host.processes._SAME_LOOK", 3600.0)
    pane = subprocess.Popen(["sh", "-c", "read -r line; exec tail -f /dev/null"], stdin=subprocess.PIPE)
    try:
        stage = Stage()
        stage.processes = ProcTable()
        assert [p.name for p in stage.processes.tree(pane.pid)] == ["sh"]
        pane.stdin.write(b"go\n")
        pane.stdin.flush()
        until(lambda: [p.name for p in ProcTable().tree(pane.pid)] == ["tail"])
        ref = REF._replace(pid=pane.pid)
        done = Performer(stage, stage, None).act(replace(action, ref=ref, expects="sh"), message())
    finally:
        pane.kill()
        pane.communicate()
    assert (done.outcome, stage.tmux.typed) == (Outcome.STALE, [])


def test_the_cause_is_on_record_before_the_effect():
    stage = Stage("tui")
    Performer(stage, stage, None).act(PRESS)
    Performer(stage, stage, None).act(PASTE, message())
    assert stage.events.lines == [("press", 0), ("paste", 1)]
    assert len(stage.tmux.typed) == 2


def test_whoever_expects_nobody_types_to_anybody():
    stage = Stage("sh")
    assert Performer(stage, stage, None).act(replace(PRESS, expects="")).ok


@pytest.mark.parametrize(("pasted", "says"), [(True, "not drawn anything"), (False, "typing it anew")])
def test_a_text_that_a_predecessor_died_before_typing_is_typed_and_one_that_was_typed_is_not_typed_twice(
    pasted, says
):
    """I11, I20: a silent program may be slow to read what tmux took; it never gets what nobody typed."""
    memory = flying(MessageState.TYPED, 3.0, at_wall=NOW.wall - 3.0, pasted=pasted)
    silent = PANE._replace(activity=NOW.wall - 60)
    look = seen(pane=silent, reading=reading("idle", draft=""))
    verdict = receipts(case(replace(memory, state="idle"), backend=DECLARED, seen=look))
    assert says in verdict.reason
    assert verdict.action is None


LONG = "\n".join(f"line {n} of a long text" for n in range(60))


@pytest.mark.parametrize(
    ("text", "file", "draft", "ours"),
    [
        ("look at it", "", "look at it", True),
        ("look at it", "", "please also look at it", False),
        ("look at it", "/wake.md", "look at it", True),
        ("look at it", "/wake.md", "please also look at it", False),  # a wake over a person's first words
        ("", "/kickoff.txt", "line 58 of a long text line 59 of a long text", True),
        (LONG, "", "[Pasted text #1 +59 lines]", True),
        (LONG, "", "[Pasted Content 1500 chars] of a long text", True),
        (LONG, "", "please also [Pasted text #1 +59 lines]", False),
        ("", "/kickoff.txt", "[Pasted ~60 lines]", True),
        ("it says\n[Pasted text #2 +9 lines]\nand", "", "it says\n[Pasted text #2 +9 lines]\nand", True),
        ("it says\n[Pasted text #2 +9 lines]\nand", "", "no: it says\n[Pasted text #2 +9 lines]\nand", False),
    ],
)
def test_only_our_own_words_are_submitted(text, file, draft, ours):
    """I12: also where a person began to write in the very moment in which we typed."""
    sent = replace(message(), text=text, file=file, tail=tail_of(text or LONG))
    memory = replace(
        READY, outbox=(replace(sent, status=MessageState.TYPED, run=REF.run, at=NOW.steady - 5.0),)
    )
    verdict = receipts(case(memory, backend=DECLARED, seen=seen(reading=reading("idle", draft=draft))))
    assert isinstance(verdict.action, Press) == ours


def test_what_is_owed_outlives_a_write_that_failed_and_what_was_to_be_typed_is_taken_back():
    waits, typed = message(), replace(message(), status=MessageState.TYPED, run="run1")
    owed = replace(message("kickoff"), id="kickoff-run1")
    before = replace(READY, outbox=(waits,))
    after = replace(READY, outbox=(typed, owed, replace(typed, id="new and typed")))
    assert take_back(before, after, acted=True).outbox == (waits, owed)
