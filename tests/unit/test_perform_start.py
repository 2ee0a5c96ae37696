"""Many starts at once go to tmux in portions, and each agent hears what became of its own."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from fleet.core.model import Member
from fleet.core.words import Outcome
from fleet.ports import Launch, Unavailable
from fleet.supervisor.perform import BATCH, Order, Performer, Ready, Run
from tests.outcomes import DONE


class Hasty:
    """A tmux that stops answering after so many sessions."""

    def __init__(self, good: int) -> None:
        self.good = good
        self.asked: list[int] = []

    def create(self, launches):
        self.asked.append(len(launches))
        if sum(self.asked) > self.good:
            raise Unavailable("tmux did not answer")
        return dict.fromkeys((one.session for one in launches), DONE)


def started(size: int, good: int):
    tmux = Hasty(good)
    world = SimpleNamespace(tmux=tmux, point=lambda name: None, locks=SimpleNamespace(state=nullcontext))
    house = SimpleNamespace(
        events=SimpleNamespace(record=lambda *_, **__: None, begin=lambda _: None),
    )
    ready = [
        Ready(
            Order(Member(f"s{n}", f"t-s{n}", "service", "", "/", "heal", command="true"), "up"),
            Run(f"r{n}", f"t-s{n}", 0.0),
            Launch(f"t-s{n}", f"/x/launch-{n}.sh", f"r{n}", f"{n}.log", {}),
        )
        for n in range(size)
    ]
    return tmux, Performer(world, house, None)._create(ready)


@pytest.mark.parametrize("size", [1, BATCH, BATCH + 1, 5 * BATCH])
def test_no_portion_is_larger_than_tmux_answers_in_time(size):
    tmux, done = started(size, good=size)
    assert max(tmux.asked) <= BATCH
    assert sum(tmux.asked) == size
    assert all(done[f"s{n}"].ok for n in range(size))


def test_a_portion_that_is_not_answered_leaves_the_others_verdict_alone():
    tmux, done = started(3 * BATCH, good=BATCH)
    assert tmux.asked == [BATCH, BATCH]  # a server that hangs is not asked on and on
    words = [done[f"s{n * BATCH}"].outcome for n in range(3)]
    assert words == [Outcome.DONE, Outcome.UNKNOWN, Outcome.REFUSED]
