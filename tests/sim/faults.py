"""What goes wrong, and when. The whole schedule is drawn from the seed before anything runs.

Swarm style: each seed picks some kinds of fault and how often each strikes, so that one run is a storm of
clock jumps and another a quiet day with one full disk. A fault is independent of every other one (its own
salt), so a failing schedule can be shortened by leaving faults out.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.sim.agents import OUTCOMES, Temper

# Kind of fault -> how many a day, when the seed has picked it and its mood is average.
DAILY: dict[str, float] = {
    # agents and people
    "agent_kill": 20,
    "agent_massacre": 2,
    "child_kill": 4,
    "binary_missing": 3,
    "upgrade": 3,
    "user_draft": 20,
    "user_copy_mode": 8,
    "user_kills_session": 5,
    "user_renames": 2,
    "user_session": 6,
    # tmux
    "server_kill": 3,
    "server_hang": 6,
    "tmux_partial": 20,
    "tmux_deaf": 4,
    # the supervisor and its machine
    "crash": 40,
    "crash_loop": 1,
    "stopped": 6,
    "reboot": 1.5,
    "clock_jump": 6,
    "suspend": 3,
    "zone_night": 0.5,
    # disk
    "disk_full": 3,
    "disk_read_only": 2,
    "disk_error": 20,
    # config
    "config_garbled": 4,
    "config_cut": 4,
    "config_edited": 6,
    "config_shrunk": 2,
    # the operator
    "op_down": 6,
    "op_up": 8,
    "op_down_all": 1,
    "op_up_all": 2,
    "op_restart": 6,
    "op_restart_fresh": 3,
    "op_watchdog": 3,
    "op_pause": 5,
    "op_pause_until": 4,
    "op_unpause": 6,
    "op_freeze": 4,
    "op_thaw": 5,
    "op_reset": 5,
    "op_send": 20,
    "op_gives_up": 6,
}


# The same for a fleet with a loop and with agents that report by themselves.
LOOP_DAILY: dict[str, float] = {
    "hooks_lost": 2,
    "hooks_garbled": 4,
    "servers_trouble": 4,
    "transcript_broken": 4,
    "repo_offline": 6,
    "repo_locked": 4,
    "children_hang": 4,
    "children_refused": 4,
    "done_trigger": 2,
    "inbox_message": 6,
    "op_phase_set": 3,
    "op_phase_next": 3,
}


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong. `call` > 0: in the middle of a tick, at that port call."""

    at: float  # universe time
    kind: str
    salt: int
    call: int = 0

    def __str__(self) -> str:
        where = f" at port call {self.call}" if self.call else ""
        return f"{self.at:10.1f} s  {self.kind} (salt {self.salt}){where}"


def schedule(seed: int, seconds: float, *, loop: bool = False) -> tuple[Fault, ...]:
    """Everything that goes wrong in this seed's first `seconds`."""
    found = _drawn(Random(f"{seed}/faults"), DAILY, seconds) or [Fault(seconds / 2, "crash", seed)]
    if loop:
        found += _drawn(Random(f"{seed}/loop-faults"), LOOP_DAILY, seconds)
    return tuple(sorted(found, key=lambda f: f.at))


def _drawn(rng: Random, table: dict[str, float], seconds: float) -> list[Fault]:
    kinds = [k for k in table if rng.random() < 0.5]
    found = []
    for kind in kinds:
        daily = table[kind] * rng.choice((0.3, 1.0, 1.0, 3.0))
        at = rng.expovariate(daily / 86_400)
        while at < seconds:
            call = rng.randrange(1, 60) if rng.random() < 0.4 else 0
            found.append(Fault(at, kind, rng.randrange(1_000_000), call))
            at += rng.expovariate(daily / 86_400)
    return found


def temper(seed: int) -> Temper:
    """How this seed's agents behave."""
    rng = Random(f"{seed}/temper")
    weights = {k: w * rng.choice((0.3, 1.0, 3.0)) for k, w in OUTCOMES.items() if rng.random() < 0.6}
    weights["idle"] = 8.0
    return Temper(
        weights=weights,
        work=rng.choice((120.0, 600.0, 600.0, 1800.0)),
        stubborn=rng.choice((0.0, 0.1, 0.5)),
        daemons=rng.choice((0.0, 0.3, 0.6)),
        boot_death=rng.choice((0.0, 0.0, 0.02, 0.2)),
        not_found=rng.choice((0.0, 0.05, 0.15)),
        quotes=rng.choice((0.0, 0.3)),
    )
