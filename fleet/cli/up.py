"""Start agents, services and the watchdog. What runs already is left alone.

A bare `up` starts everything that is enabled, the services and the watchdog. `up NAME...` starts just
those. It waits until each agent is ready, and says which is not.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING

from fleet.cli.common import ENGINE, Fail, Io, load_fleet, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.config.invocation import Override
    from fleet.core.model import AgentSpec, Fleet, ServiceSpec
    from fleet.world.operator import Operator
    from fleet.world.perform import Done

    Spec = AgentSpec | ServiceSpec

READY_S = 90.0
POLL_S = 0.1
WATCHDOG_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names, and how to go about it."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="start just these; `watchdog` is one of them"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and do nothing")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until the agents are ready")
    parser.add_argument(
        "--timeout", type=seconds, default=READY_S, metavar="S", help="how long to wait for all"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    from fleet import config
    from fleet.core.model import WATCHDOG
    from fleet.world.operator import Operator

    fleet = load_fleet(args, io)
    fleet, overrides = config.override(fleet, os.environ)
    specs = chosen(fleet, args.names)
    operator = Operator(fleet)
    _refuse(operator)
    if args.dry_run:
        return _dry_run(operator, specs, io, as_json=args.json)
    operator.make_room()
    homeless = _clone(fleet, specs, io)
    results = _start(operator, specs, homeless, bare=not args.names)
    say_overrides(overrides, results, io)
    _say_pointers(operator, specs, results, io)
    why = ""
    if not args.names or WATCHDOG in args.names:
        why = start_watchdog(operator, io, wait=not args.no_wait, quiet=not args.names)
    elif _unattended(operator):
        io.note("no watchdog runs: nothing is healed until `agents.py up` starts one")
    states = {} if args.no_wait else wait_ready(fleet, [s for s in specs if _is_up(results, s)], args.timeout)
    code = report(fleet, specs, results, states, io, as_json=args.json)
    return 1 if why else code


def _say_pointers(operator: Operator, specs: Sequence[Spec], results: dict[str, Done], io: Io) -> None:
    """A kickoff that no command line can hold is only pointed to: its author should know."""
    from fleet.core.model import AgentSpec
    from fleet.world.launch import ARGUMENT_CAP

    for spec in specs:
        if results[spec.name].ok and isinstance(spec, AgentSpec):
            path = operator.house.path(f"kickoff-{spec.session}.txt")
            by_file = operator.fleet.backend_of(spec).prompt_delivery == "exec"
            size = 0 if by_file else os.path.getsize(path)
            if size > ARGUMENT_CAP:
                io.warn(f"{spec.name}: its kickoff has {size // 1000} kB: it is told to read {path}")


def say_overrides(overrides: Sequence[Override], results: dict[str, Done], io: Io) -> None:
    """What the caller's environment changed, and what it could not."""
    for one in overrides:
        done = results.get(one.agent)
        if done is None:
            why = one.text if not one.agent else f"{one.agent} was not to be started"
            io.note(f"{one.variable} has no effect: {why}")
        elif done.why == "exists":
            io.note(f"{one.variable} has no effect: {one.agent} was running already; `restart` it")
        elif done.ok:
            io.note(f"{one.variable}: {one.agent} starts with {one.text}")


def chosen(fleet: Fleet, names: Sequence[str]) -> list[Spec]:
    """The members meant: those named, or everything that is enabled."""
    everybody: dict[str, Spec] = {s.name: s for s in fleet.members}
    if not names:
        return [s for s in everybody.values() if s.enabled]
    from fleet.cli.common import session_of

    for name in names:
        session_of(fleet, name)  # fails with the nearest name, before anything is touched
    return [everybody[n] for n in dict.fromkeys(names) if n in everybody]


def _refuse(operator: Operator) -> None:
    taken = operator.strangers()
    if taken:
        raise Fail(
            f"on your own tmux server there are sessions of these names already: {', '.join(taken)}",
            hint='stop them there, choose another session_prefix, or set tmux_socket = "default"',
        )
    moved = operator.moved_socket()
    if moved:
        raise Fail(
            f"the fleet runs on tmux socket {moved!r}, the file now says {operator.fleet.tmux_socket!r}",
            hint="`down` with the old value first",
        )
    refuse_earlier(operator)


def refuse_earlier(operator: Operator) -> None:
    """Two fleets in one log_dir would take each other's records for their own."""
    if earlier := operator.earlier():
        raise Fail(
            f"session_prefix was changed under a running fleet: {', '.join(earlier)}",
            hint="put the old one back, `down`, then change it",
        )


def _clone(fleet: Fleet, specs: Sequence[Spec], io: Io) -> dict[str, str]:
    """Agents that live in a clone get it before they start; name to why one did not."""
    from fleet.core.model import AgentSpec

    wanted = [s for s in specs if isinstance(s, AgentSpec) and s.clone and not os.path.lexists(s.dir)]
    if not wanted:
        return {}
    import subprocess

    from fleet.world.clone import CloneError, make_clone

    failed = {}
    for spec in wanted:
        io.note(f"{spec.name}: cloning {spec.clone} into {spec.dir}")
        try:
            make_clone(spec.clone, spec.dir, f"{fleet.log_dir}/repos")
        except (CloneError, OSError, subprocess.TimeoutExpired) as error:
            failed[spec.name] = f"no clone: {error}; correct `clone`, or make {spec.dir} yourself"
    return failed


def _start(
    operator: Operator, specs: Sequence[Spec], homeless: dict[str, str], *, bare: bool
) -> dict[str, Done]:
    """Who has no place to stand is wanted all the same: a watchdog tries again, by and by."""
    from fleet.core.desired import Want
    from fleet.world.perform import Done

    names = [s.name for s in specs]
    with operator.holding(names, "up", Want.UP):
        if not bare:
            _pardon(operator, names)
        results = operator.start([s for s in specs if s.name not in homeless], "up", bare=bare)
    return results | {name: Done(ok=False, why=why) for name, why in homeless.items()}


def _pardon(operator: Operator, names: Sequence[str]) -> None:
    """`up NAME` is a person's word: a verdict of before does not count any more."""
    from fleet.cli.ask import pardon

    pardon(operator, names)


def start_watchdog(operator: Operator, io: Io, *, wait: bool, quiet: bool = False) -> str:
    """The supervisor, looking: "" or why not, which is said."""
    from fleet.world.operator import watchdog_argv

    why = operator.start_watchdog(watchdog_argv(operator.fleet, ENGINE))
    if not why and wait and not _beats(operator):
        why = "it does not look; see `agents.py logs watchdog`"
    if why:
        io.error(f"the watchdog could not be started: {why}", hint="agents.py doctor")
    elif not quiet:
        io.note("the watchdog runs")
    return why


def _beats(operator: Operator) -> bool:
    """Has the watchdog looked since we asked for it?"""
    from fleet.cli.view import heartbeat
    from fleet.journal.locks import watchdog_holder

    deadline = time.monotonic() + WATCHDOG_S
    while time.monotonic() < deadline:
        holder, beat = watchdog_holder(operator.house.state_dir), heartbeat(operator.house.state_dir)
        if holder is not None and beat is not None and beat >= holder.since:
            return True
        time.sleep(POLL_S / 2)
    return False


def _unattended(operator: Operator) -> bool:
    from fleet.journal.locks import watchdog_holder

    return watchdog_holder(operator.house.state_dir) is None


def _is_up(results: dict[str, Done], spec: Spec) -> bool:
    done = results.get(spec.name)
    return done is not None and (done.ok or done.why == "exists")


def wait_ready(fleet: Fleet, specs: Sequence[Spec], timeout: float) -> dict[str, tuple[bool, str]]:
    """Watch until each is ready, dead or out of time: name to (ready, what it is)."""
    from fleet.cli.deputy import observer

    dog = observer(fleet, [s.name for s in specs])
    states: dict[str, tuple[bool, str]] = {}
    deadline = time.monotonic() + timeout
    waiting = {s.name for s in specs}
    while waiting:
        dog.tick()
        for name in sorted(waiting):
            verdict, seen = dog.mind.judged.get(name), dog.last_look.seen[name] if dog.last_look else None
            if verdict is None or seen is None:
                continue
            gone = not seen.blind and (seen.pane is None or seen.pane.dead)
            if verdict.memory.ready and not gone:
                states[name] = (True, str(verdict.detail))
            elif gone:
                states[name] = (_finished(fleet, name, seen), f"{verdict.reason}")
            elif str(verdict.detail) == "ASKING" or verdict.memory.fatal:
                states[name] = (False, verdict.reason)
        waiting -= set(states)
        if time.monotonic() >= deadline:
            break
        if waiting:
            time.sleep(POLL_S)
    for name in waiting:
        verdict = dog.mind.judged.get(name)
        states[name] = (
            False,
            f"not ready after {timeout:.0f} s: {verdict.reason if verdict else 'not seen'}",
        )
    return states


def _finished(fleet: Fleet, name: str, seen: object) -> bool:
    """A task may have run and ended before we looked: that is success."""
    agent = fleet.agent(name)
    pane = getattr(seen, "pane", None)
    return agent is not None and agent.kind == "task" and pane is not None and pane.exit_code == 0


def report(
    fleet: Fleet,
    specs: Sequence[Spec],
    results: dict[str, Done],
    states: dict[str, tuple[bool, str]],
    io: Io,
    *,
    as_json: bool,
) -> int:
    """One line a member, and whether all is well."""
    rows = []
    fine = True
    for spec in specs:
        done = results[spec.name]
        ready, what = states.get(spec.name, (done.ok or done.stale, done.why))
        started = "started" if done.ok else "was running" if done.why == "exists" else "not started"
        good = (done.ok or done.stale) and ready
        fine = fine and good
        rows.append(
            {
                "name": spec.name,
                "result": started,
                "ready": ready and started != "not started",
                "detail": what or (done.why if done.why != "exists" else ""),
            }
        )
    if as_json:
        io.json({"ok": fine, "agents": rows})
        return 0 if fine else 1
    table = [(r["name"], r["result"], "ready" if r["ready"] else "NOT READY", r["detail"]) for r in rows]
    if table:
        io.table(("name", "up", "", "detail"), table)
    if not fine:
        io.note(f"look closer with: agents.py status --config {fleet.config_path}")
    return 0 if fine else 1


def _dry_run(operator: Operator, specs: Sequence[Spec], io: Io, *, as_json: bool) -> int:
    panes = operator.panes()
    rows = []
    for spec in specs:
        pane = panes.get(spec.session)
        what = "start" if pane is None else "replace the dead pane" if pane.dead else "leave: it runs"
        rows.append({"name": spec.name, "session": spec.session, "would": what})
    if as_json:
        io.json({"plan": rows})
    else:
        io.table(("name", "session", "would"), [tuple(r.values()) for r in rows])
    return 0
