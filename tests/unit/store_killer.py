"""Kill a writer at random moments and look at what it left. Run as a program: KIND DIRECTORY ROUNDS SEED.

A child saves numbers one after the other and tells each one it has finished through a pipe. After the
kill the newest number on disk must be the last told, or the one that was under way. Prints how many
rounds broke that promise.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from fleet.host.disk import RealDisk
from fleet.store.documents import Store
from fleet.store.eventlog import Begun, Events, read

PAD = "x" * 20000


def save_store(where, number):
    store = Store(RealDisk(), where, time.time)
    store.load("fleet")
    while True:
        number += 1
        store.save("fleet", {"n": number, "pad": PAD})
        yield number


def load_store(where):
    store = Store(RealDisk(), where, time.time)
    data = store.load("fleet")
    return -1 if store.troubles or data is None or data["pad"] != PAD else data["n"]


def save_naive(where, number):
    while True:
        number += 1
        with open(f"{where}/fleet.json", "w", encoding="utf-8") as file:
            json.dump({"n": number, "pad": list(PAD)}, file)
        yield number


def load_naive(where):
    try:
        with open(f"{where}/fleet.json", encoding="utf-8") as file:
            return json.load(file)["n"]
    except (OSError, ValueError):
        return -1


def save_events(where, number):
    events = Events(RealDisk(), f"{where}/events.jsonl", time.time)
    while True:
        number += 1
        events.record("agent.ready", n=number, pad=PAD[:3000], sync=True)
        yield number


def load_events(where):
    numbers = [r["facts"]["n"] for r in read(RealDisk(), f"{where}/events.jsonl")]
    return numbers[-1] if numbers == list(range(1, len(numbers) + 1)) else -1


def save_effects(where, number):
    events = Events(RealDisk(), f"{where}/events.jsonl", time.time)
    while True:
        number += 1
        events.begin([Begun("start", "a", str(number), "test")])
        yield number


def load_effects(where):
    numbers = [int(r["facts"]["run"]) for r in read(RealDisk(), f"{where}/events.jsonl")]
    return numbers[-1] if numbers == list(range(1, len(numbers) + 1)) else -1


KINDS = {
    "store": (save_store, load_store),
    "naive": (save_naive, load_naive),
    "events": (save_events, load_events),
    "effects": (save_effects, load_effects),
}


def one_round(kind: str, where: str, start: int, delay: float) -> tuple[int, int]:
    """The last number told, and the one found on disk."""
    save, load = KINDS[kind]
    told_fd, tell_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for number in save(where, start):
                os.write(tell_fd, b"%d\n" % number)
        finally:
            os._exit(3)
    os.close(tell_fd)
    first = os.read(told_fd, 64)  # the writer is at work
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    told = first
    while part := os.read(told_fd, 65536):
        told += part
    os.close(told_fd)
    return int(told.split()[-1]), load(where)


def main() -> None:
    kind, where, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    dice = random.Random(seed)
    broken, number = [], 0
    for _ in range(rounds):
        told, found = one_round(kind, where, number, dice.random() * 0.006)
        if found not in {told, told + 1}:
            broken.append((told, found))
        number = max(found, told)
    print(json.dumps({"broken": len(broken), "first": broken[:1], "last": number}))


main()
