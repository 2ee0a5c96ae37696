"""An open dialog: press the one key its profile allows, or report it. Never a blind Enter."""

from __future__ import annotations

from fleet.core.case import SEEN_ONCE, Case, Verdict, do, hold
from fleet.core.decision import Note
from fleet.core.effects import Press
from fleet.core.seen import ScreenState
from fleet.core.words import Detail, EventType

TRIES = 2
LOOKS = 2


def asking(case: Case) -> Verdict | None:
    """Answer what may be answered; otherwise say that a person is needed."""
    memory, reading, pane = case.memory, case.seen.reading, case.seen.pane
    if memory.state != ScreenState.ASKING:
        if memory.presses and memory.state_looks >= LOOKS:
            return Verdict("the dialog is gone", memory=memory._replace(pressed="", presses=0))
        return None
    if reading is None or pane is None:
        return hold(f"it asks: {case.seen.asked}", Detail.ASKING)
    presses = memory.presses if memory.pressed == reading.dialog else 0
    if not reading.key or presses >= TRIES:
        need = reading.fix or "attach and answer it"
        return hold(f"it asks ({reading.dialog or 'a question'}): {need}", Detail.ASKING)
    if memory.state_looks < LOOKS or not case.seen.fresh:
        return hold(f"a dialog ({reading.dialog}), {SEEN_ONCE}", Detail.ASKING, case.now.after(0.5))
    pressed = memory._replace(pressed=reading.dialog, presses=presses + 1, state_looks=0)
    act = Press(case.agent.name, pane.ref, (reading.key,), f"dialog {reading.dialog}: its one allowed key")
    return do(act, Detail.ASKING, case.now.after(1.0), pressed, (Note(EventType.AGENT_ASKED, act.cause),))
