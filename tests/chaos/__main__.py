"""Storm over a fleet on real tmux, then peace, then judgement.

    python -m tests.chaos [--minutes 3] [--seed S] [--keep DIR]

Exit 1 and the broken promises when there are any. The seed fixes which faults strike; when they strike is the
machine's business, so a seed is a way to look for the same trouble again, not to have it again for sure.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.arena import NAMES, Arena
from tests.chaos.checker import check
from tests.chaos.nemesis import Nemesis
from tests.deadlines import patience

CRON_S = 4.0  # how often `ensure` is called, as cron would
PEACE_S = 120.0


def storm(arena: Arena, nemesis: Nemesis, seconds: float) -> Counter[str]:
    """Strike until the time is over."""
    struck: Counter[str] = Counter()
    until, cron = time.monotonic() + seconds, 0.0
    ensured: Future[int] | None = None
    while time.monotonic() < until:
        struck[nemesis.strike()] += 1
        if time.monotonic() > cron and (ensured is None or ensured.done()):
            cron = time.monotonic() + CRON_S
            ensured = arena.verb("ensure")
            arena.decoys()
        time.sleep(nemesis.rng.uniform(0.2, 1.2))
    return struck


def peace(arena: Arena, nemesis: Nemesis) -> dict[str, Any]:
    """No more faults. Everything must become well, and go away when told to."""
    time.sleep(6.0)  # what was frozen thaws, what was renamed gets its name back
    nemesis.mend_config()
    arena.wait_for_verbs()
    arena.verb("up", "--timeout", "60", timeout=120).result()
    arena.verb("unpause", *NAMES, names=NAMES).result()
    arena.verb("reset", *NAMES, names=NAMES).result()
    began, converged, facts = time.monotonic(), None, {}
    while converged is None and time.monotonic() - began < patience(PEACE_S):
        facts = json.loads(arena.project.agents("status", "--json", code=None).partition("\n{")[0] or "{}")
        rows = [*facts.get("agents", ()), *facts.get("services", ())]
        well = rows and all(r["state"] == "RUNNING" for r in rows) and not facts["problems"]
        if well and facts["watchdog"]["state"] == "running":
            converged = time.monotonic() - began
        elif facts.get("watchdog", {}).get("state") != "running":
            arena.verb("ensure").result()
        time.sleep(0.3)
    said = [f"{r['name']}: {r['state']} {r['detail']} {r['reason']}" for r in rows]
    end = {"converged": converged, "waited": time.monotonic() - began}
    end["problems"] = facts.get("problems") or said
    arena.verb("down").result()
    return end | {"left": arena.left()}


def run(root: Path, minutes: float, seed: int) -> list[str]:
    """One storm; the broken promises."""
    arena = Arena(root)
    nemesis = Nemesis(arena, Random(seed))
    print(f"seed {seed}, {minutes:g} min, in {root}", flush=True)
    try:
        arena.guests()
        arena.watch()
        arena.verb("up", timeout=120).result()
        arena.decoys()
        struck = storm(arena, nemesis, minutes * 60)
        end = peace(arena, nemesis)
        arena.stop_watching()
        story = arena.story(end)
        with open(root / "nemesis.json", "w", encoding="utf-8") as file:
            told = {"seed": seed, "deeds": story.deeds, "verbs": story.verbs, "end": end}
            json.dump(told, file, indent=1)
    finally:
        arena.stop_watching()
        arena.tear_down()
    broken = check(story)
    looks, starts = len(story.history), sum(e["type"] == "agent.started" for e in story.events)
    after = end["converged"]
    calm = "never well again" if after is None else f"well again after {after:.1f} s"
    print(f"{sum(struck.values())} faults, {starts} starts, {looks} looks; {calm}")
    print(", ".join(f"{kind} {count}" for kind, count in struck.most_common()))
    return broken


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(prog="tests.chaos", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--keep", help="keep history, record and state in this directory")
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="aotest-chaos-"))
    broken = run(root, args.minutes, args.seed)
    for text in broken:
        print(f"BROKEN {text}")
    if broken or args.keep:
        kept = Path(args.keep or f"{root}-kept")
        shutil.copytree(root, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("sockets", "wake"))
        print(f"kept in {kept}")
    shutil.rmtree(root, ignore_errors=True)
    print("broken promises" if broken else "no promise broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
