"""What one look at the whole fleet costs, against the usual ways, at 10 to 1000 panes.

    python bench/snapshot.py [--quick] [--json] [--sizes 10,100]

All ways look at the same private server in the same run, in turns, so that the ratios hold on a busy
machine too. What grows by process (libtmux, one capture a process) is sampled at 25 sessions inside the
full fleet and scaled; its fixed part is not. Five in a hundred panes count as changed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fleet.core.seen import PaneRef
from fleet.host.tmux import language
from fleet.host.tmux.client import TmuxServer, resolve_socket
from fleet.host.tmux.control import ControlTmux

SAMPLE = 25
PROJECT = "bench"
SCREEN = "i=0; while [ $i -lt 300 ]; do printf '\\033[3%dmline %d of what an agent said\\033[0m\\n' $((i % 8)) $i; i=$((i+1)); done; exec sleep 100000\n"  # noqa: E501

Way = Callable[[], float]


@contextmanager
def fleet_of(size: int) -> Iterator[tuple[TmuxServer, list[PaneRef]]]:
    """A private server with that many full panes, gone afterwards."""
    name = f"aotest-bench-{os.getpid()}-{size}"
    with tempfile.TemporaryDirectory() as home:
        state = os.path.join(home, "state")
        os.makedirs(state)
        with open(os.path.join(state, "fill.sh"), "w", encoding="ascii") as file:
            file.write(SCREEN)
        server = TmuxServer(name, PROJECT, home, timeout=300.0)
        conf = server._conf()  # noqa: SLF001 - the server the product would found, without its sessions
        subprocess.run([*server.argv, *conf, "start-server"], check=True, env=server.environment, cwd=state)
        try:
            for at in range(0, size, 100):
                server.ask([_session(n) for n in range(at, min(at + 100, size))])
            yield server, _settled(server, size)
        finally:
            subprocess.run([*server.argv, "kill-server"], check=False, env=server.environment)
            _gone(resolve_socket(name))


def _session(n: int) -> str:
    """As the product makes one."""
    return language.create(f"b-{n}", "fill.sh", run=f"r{n}", log="/dev/null", project=PROJECT, env={})


def _settled(server: TmuxServer, size: int) -> list[PaneRef]:
    """The panes, once all of them have printed everything."""
    while True:
        panes = server.listing().panes
        if len(panes) == size and all(p.history >= 250 for p in panes):
            return [p.ref for p in panes]
        time.sleep(0.2)


def _gone(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def timed(act: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def ways(server: TmuxServer, control: ControlTmux, refs: list[PaneRef]) -> dict[str, Way]:
    """Each way of looking, as milliseconds a look at the whole fleet."""
    size = len(refs)
    sample = refs[:: max(1, size // SAMPLE)][:SAMPLE]
    scale = size / len(sample)
    changed = refs[:: max(1, size // max(1, size // 20))][: max(1, size // 20)]
    env = server.environment

    def libtmux_sessions() -> float:
        import libtmux

        theirs = libtmux.Server(socket_path=resolve_socket(server.argv[2]))
        began = time.perf_counter()
        sessions = {s.session_name: s for s in theirs.sessions}
        fixed = (time.perf_counter() - began) * 1000
        each = timed(lambda: [sessions[r.session].active_pane.capture_pane() for r in sample])
        return fixed + each * scale

    def processes() -> float:
        capture = [*server.argv, "capture-pane", "-p", "-J", "-t"]
        fixed = timed(server.listing)
        each = timed(
            lambda: [
                subprocess.run([*capture, r.pane], capture_output=True, check=True, env=env) for r in sample
            ]
        )
        return fixed + each * scale

    return {
        "libtmux, session by session": libtmux_sessions,
        "one process a capture": processes,
        "two processes: list, changed": lambda: timed(lambda: (server.listing(), server.capture(changed))),
        "control: list only": lambda: timed(control.listing),
        "control: list, all captured": lambda: timed(lambda: (control.listing(), control.capture(refs))),
        "control: list, changed captured": lambda: timed(
            lambda: (control.listing(), control.capture(changed))
        ),
    }


def measure(size: int, rounds: int) -> dict[str, float]:
    """Median milliseconds by way; the slow ways get one round, which at their length is enough."""
    with fleet_of(size) as (server, refs):
        control = ControlTmux(server)
        try:
            control.listing()
            if not control.connected:
                raise SystemExit("the control client could not attach: nothing to measure")
            looks = ways(server, control, refs)
            figures: dict[str, list[float]] = {name: [] for name in looks}
            for turn in range(rounds):
                for name, look in looks.items():
                    slow = "libtmux" in name or "one process" in name
                    if not slow or turn < (rounds // 3 if size <= 100 else 1):
                        figures[name].append(look())
            return {name: statistics.median(values) for name, values in figures.items()}
        finally:
            control.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="10 and 100 panes, few rounds")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="")
    asked = parser.parse_args()
    sizes = [int(n) for n in asked.sizes.split(",") if n] or (
        [10, 100] if asked.quick else [10, 100, 500, 1000]
    )
    os.environ.pop("TMUX", None)
    results = {}
    for size in sizes:
        results[size] = measure(size, 3 if asked.quick else 9)
        if not asked.json:
            _print(size, results[size])
    if asked.json:
        print(json.dumps({"unit": "ms", "changed": 0.05, "median": results}, indent=2))
    return 0


def _print(size: int, figures: dict[str, float]) -> None:
    base = figures["libtmux, session by session"]
    print(f"\n{size} panes{'':27}ms a look   times faster than libtmux")
    for name, value in figures.items():
        print(f"  {name:<34}{value:>10.2f}{base / value:>12.0f}")


if __name__ == "__main__":
    sys.exit(main())
