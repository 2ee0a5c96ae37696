"""Before anything else: whose is it, could it be seen, and is its desired state up?

`down` wins. A session that appears although its desired state is down was made by a start that raced
with a `down`, so it is taken away again.
"""

from __future__ import annotations

from fleet.core.agent.stopping import begin
from fleet.core.case import Case, Verdict, do, hold
from fleet.core.desired import Want
from fleet.core.effects import Unpause
from fleet.core.words import Detail

AGAIN_S = 1.0


def intent(case: Case) -> Verdict | None:
    """Hold everything that is not ours to touch, or not wanted."""
    seen, wish = case.seen, case.seen.wish
    alive = seen.pane is not None and not seen.pane.dead
    if seen.blind:
        # an agent that was not seen is looked at wholly next time: nothing may follow from old evidence
        return hold(f"not seen: {seen.blind}", Detail.UNSEEN, case.now.after(AGAIN_S))
    if seen.foreign:
        return hold("a session of this name is not ours; it is left alone", Detail.FOREIGN)
    if case.memory.stopping is not None:
        return None
    if wish.want is Want.DOWN:
        if seen.pane is not None or seen.survivors:
            return begin(case, "it was taken down", planned=True)
        return hold("taken down", Detail.DOWN)
    if wish.want is not Want.UP:
        if alive:
            return hold("running, but no `up` has asked for it: `up` has it watched")
        return hold("no `up` has asked for it", Detail.DOWN if case.agent.enabled else Detail.DISABLED)
    if wish.over:
        return _unpause(case)
    if wish.frozen or wish.paused:
        detail = Detail.FROZEN if wish.frozen else Detail.PAUSED
        ends = case.now.until(wish.until) if wish.until else None
        return hold(f"{detail.lower()} by the operator", detail, ends)
    return None


def _unpause(case: Case) -> Verdict:
    """A pause whose time is over ends: first the run goes on, then the record says so."""
    pane, frozen = case.seen.pane, case.seen.wish.frozen
    ref = pane.ref if pane is not None and frozen else None
    pid = ref.pid if ref is not None and pane is not None and not pane.dead else 0
    act = Unpause(case.agent.name, "its pause is over", ref.run if ref else "", pid)
    detail = Detail.FROZEN if frozen else Detail.PAUSED
    return do(act, detail, case.now.after(AGAIN_S))


def unwatched(case: Case) -> Verdict | None:
    """Watch = "none": what was said to it is typed and a phase takes it along, nothing else is done."""
    if case.agent.is_loop and case.memory.planned and case.seen.pane is None:
        return None
    pane = case.seen.pane
    if pane is not None and not pane.dead:
        return hold("not watched")
    how = "ended"
    if pane is not None:
        how = "finished" if pane.exit_code == 0 else pane.ending
    return hold(f"{how}; it is not watched, so it is left as it is", Detail.EXITED)
