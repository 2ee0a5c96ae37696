"""What the supervisor costs: one tick over the real tmux with its rules, and a process over some time."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import Figure, processor, project, resident, timed
from fleet import config
from fleet.host.tmux.control import ControlTmux
from fleet.host.tmux.server import server_of
from fleet.supervisor.reload import Reloader
from fleet.supervisor.tick import Supervisor
from fleet.supervisor.world import real_helpers, real_world

CHANGED = 20  # one in so many panes changes between two ticks
TIMES = {1000: 200}  # how much cheaper a whole tick must be than looking with libtmux alone


def ticks(size: int, rounds: int) -> tuple[float, float]:
    """Median milliseconds of a tick in which one in twenty panes changed, and of one in which nothing did."""
    with project(size) as (made, starts):
        made.agents("up", "--no-wait", timeout=600)
        made.agents("down", "watchdog")
        fleet = config.load(str(made.config))
        tmux = ControlTmux(server_of(fleet.ground))
        world = real_world(fleet, tmux)
        read = Reloader(world, str(made.config), config.parse)
        dog = Supervisor(world, read, real_helpers(fleet, world))
        assert not dog.open()
        dog.begin()
        try:
            _settle(dog, size, starts)
            pids = [p.ref.pid for p in tmux.listing().panes][:: max(1, min(CHANGED, size))] or []
            moving, still = [], []
            for _ in range(rounds):
                for pid in pids:
                    os.kill(pid, signal.SIGUSR1)
                time.sleep(1.2)  # the list dates changes in whole seconds
                moving.append(timed(dog.tick))
                dog.tick()
                time.sleep(2.2)
                dog.tick()
                still.append(timed(dog.tick))
        finally:
            tmux.close()
        made.agents("down", timeout=600)
    return statistics.median(moving), statistics.median(still)


def _settle(dog: Supervisor, size: int, starts: Path) -> None:
    """Until every agent runs and has been found at rest."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        dog.tick()
        resting = sum(d.shown.detail == "IDLE" for d in dog.mind.decided.values())
        if len(list(starts.iterdir())) == size and resting == size:
            return
        time.sleep(0.2)
    raise SystemExit("the fleet did not settle")


def running(size: int, seconds: float) -> list[Figure]:
    """A real watchdog with ticks of one second: processor, memory, descriptors."""
    with project(size) as (made, _):
        made.agents("up", timeout=600)
        dog = made.json("status")["watchdog"]["pid"]
        server = int(made.tmux("display-message", "-p", "#{pid}"))
        time.sleep(6)
        before, theirs, began = processor(dog), processor(server), time.monotonic()
        memory, open_before = resident(dog), len(os.listdir(f"/proc/{dog}/fd"))
        time.sleep(seconds)
        spent = time.monotonic() - began
        ours = 100 * (processor(dog) - before) / spent
        added = 100 * (processor(server) - theirs) / spent
        grown = resident(dog) - memory
        descriptors = len(os.listdir(f"/proc/{dog}/fd"))
        made.agents("down", timeout=600)
    area = f"watchdog, {size} agents, 1 s ticks"
    return [
        Figure(area, "processor", ours, "% of a core", goal="<= 0.5", met=ours <= 0.5),
        Figure(area, "tmux server, all it does", added, "% of a core"),
        Figure(area, "memory", memory + grown, "MB", goal="<= 60", met=memory + grown <= 60),
        Figure(area, "memory grown meanwhile", grown, "MB", goal="<= 1", met=grown <= 1),
        Figure(
            area,
            "descriptors",
            descriptors,
            "",
            goal=f"<= agents + 30, not growing (was {open_before})",
            met=descriptors <= size + 30 and descriptors <= open_before + 1,
        ),
    ]


def figures(sizes: list[int], rounds: int, seconds: float, libtmux_ms: dict[int, float]) -> list[Figure]:
    """Ticks at each size, and one watchdog that runs."""
    found = []
    for size in sizes:
        moving, still = ticks(size, rounds)
        beside = libtmux_ms.get(size)
        times = beside / moving if beside else None
        least = TIMES.get(size) if times else None
        found.append(
            Figure(
                f"whole tick, {size} agents",
                "5 % changed, rules and record included",
                moving,
                "ms",
                beside="libtmux, session by session, looking only" if beside else "",
                ratio=times,
                goal=f">= {least} times" if least else "",
                met=None if least is None or times is None else times >= least,
            )
        )
        found.append(Figure(f"whole tick, {size} agents", "nothing changed", still, "ms"))
    return found + running(min(100, max(sizes)), seconds)


if __name__ == "__main__":
    for figure in figures([int(n) for n in sys.argv[1:]] or [10], 3, 10.0, {}):
        print(figure.plain())
