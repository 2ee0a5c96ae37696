#!/usr/bin/env python3
"""The pit: a queue of tasks that is nothing but directories. A task is a file; where it lies is its state.

    food/      tasks nobody has        claimed/   WORKER--TASK: somebody is at it
    done/      finished and checked    scraps/    given up, with the reason    waste/    not worth another try

A claim is a rename, so only one of many hungry workers gets a task, whatever they do at the same moment. A
worker that is at it touches its file now and then; one that was not touched for a while is abandoned.

    pit.py add TITLE [FILE]        put a task into food (text from FILE or stdin)
    pit.py claim WORKER            take the oldest task; prints its path, or nothing when there is none
    pit.py touch WORKER            say that you are still at it
    pit.py finish WORKER           it is done and checked
    pit.py scrap WORKER REASON     it cannot be done like this
    pit.py sweep                   abandoned claims back to food, scraps judged; prints what it did
    pit.py status [--json]         how many lie where
    pit.py watch                   print that whenever it changes
"""

import json
import os
import re
import sys
import time
from pathlib import Path

PIT = Path(os.environ.get("PIT", "work/pit"))
ABANDONED_S = float(os.environ.get("PIT_ABANDONED", "900"))  # fifteen minutes
TRIES = 2  # a task scrapped so often is waste
PLACES = ("food", "claimed", "done", "scraps", "waste")
WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def place(name):
    where = PIT / name
    where.mkdir(parents=True, exist_ok=True)
    return where


def tasks(name):
    """Oldest first, by name: food is numbered when it is put in."""
    return sorted(p for p in place(name).iterdir() if p.is_file() and not p.name.startswith("."))


def mine(worker):
    found = [p for p in tasks("claimed") if p.name.startswith(f"{worker}--")]
    if not found:
        sys.exit(f"{worker} has no task")
    return found[0]


def move(path, to, name):
    """A rename: it happens once, or not at all because somebody was faster."""
    target = place(to) / name
    try:
        path.rename(target)
    except FileNotFoundError:
        return None
    os.utime(target)
    return target


def add(title, text):
    numbers = [int(p.name.rpartition("--")[2][:3]) for name in PLACES for p in tasks(name)]
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40]
    name = f"{max(numbers, default=0) + 1:03d}-{slug}.md"
    draft = place("food") / f".{name}"
    draft.write_text(text, encoding="utf-8")
    draft.rename(place("food") / name)
    print(f"food/{name}")


def claim(worker):
    for path in tasks("food"):
        taken = move(path, "claimed", f"{worker}--{path.name}")
        if taken:
            print(taken)
            return


def finish(worker):
    path = mine(worker)
    move(path, "done", path.name.partition("--")[2])


def scrap(worker, reason):
    path = mine(worker)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\nScrapped by {worker}: {reason}\n")
    move(path, "scraps", path.name.partition("--")[2])


def sweep():
    for path in tasks("claimed"):
        if time.time() - path.stat().st_mtime > ABANDONED_S and move(
            path, "food", path.name.partition("--")[2]
        ):
            print(f"abandoned, back to food: {path.name}")
    for path in tasks("scraps"):
        tries = path.read_text(encoding="utf-8").count("\nScrapped by ")
        to = "waste" if tries >= TRIES else "food"
        if move(path, to, path.name):
            print(f"scrapped {tries} time(s), to {to}: {path.name}")


def status(*, as_json):
    counts = {name: len(tasks(name)) for name in PLACES}
    at_work = [p.name for p in tasks("claimed")]
    print(
        json.dumps(counts | {"at_work": at_work})
        if as_json
        else "  ".join(f"{k} {v}" for k, v in counts.items())
    )


def watch():
    last = ""
    while True:
        now = "  ".join(f"{name} {len(tasks(name))}" for name in PLACES)
        if now != last:
            print(time.strftime("%H:%M:%S"), now, flush=True)
            last = now
        time.sleep(0.5)


def main(words):
    verb, *rest = words or ["help"]
    if verb in {"claim", "touch", "finish", "scrap"} and not (rest and WORKER.fullmatch(rest[0])):
        sys.exit("say who you are: letters, digits, - and _")
    match verb, rest:
        case "add", [title, *file]:
            add(title, Path(file[0]).read_text(encoding="utf-8") if file else sys.stdin.read())
        case "claim", [worker]:
            claim(worker)
        case "touch", [worker]:
            os.utime(mine(worker))
        case "finish", [worker]:
            finish(worker)
        case "scrap", [worker, *reason]:
            scrap(worker, " ".join(reason) or "no reason given")
        case "sweep", []:
            sweep()
        case "status", flags:
            status(as_json="--json" in flags)
        case "watch", []:
            watch()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
