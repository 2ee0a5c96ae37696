"""Start agents, services and the watchdog.

A bare `up` starts every enabled agent and service, and the watchdog. `up NAME...` starts only the
named ones. Agents and services that run are not touched. Both forms clear the restart budget and a
FATAL verdict.

A bare `up` does not start paused agents, finished tasks, or agents with a usage limit in force;
it lists them. `up NAME` unpauses, runs a task again, and starts at once. A bare `up` replaces a
watchdog that hangs.

`up` waits until each agent is ready and names those that are not. It exits 1 then; the agents keep
running. It refuses a fleet that needs more open files than its tmux server may have, before it
starts anything.

Example: agents.py up builder
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet import config
from fleet.core.agent.bringup import Left, left_as_it_is, limited_until
from fleet.core.decision import Result
from fleet.core.desired import Desired, Want
from fleet.core.outline import WATCHDOG
from fleet.core.starts import Talk
from fleet.core.words import Detail, Outcome, Told
from fleet.host import descriptors
from fleet.host.clock import polls
from fleet.host.clone import CloneError, make_clone
from fleet.supervisor.deputy import Deputy, observer
from fleet.supervisor.launch import ARGUMENT_CAP
from fleet.verbs.arguments import flag, members, session_of, timeout
from fleet.verbs.ensure import say_of_watchdog, start_watchdog
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Fail, Io, day_and_time

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

    from fleet.config.override import Override
    from fleet.core.agent.decide import AgentDecision
    from fleet.core.case import AgentSeen
    from fleet.core.model import Fleet, Member
    from fleet.core.seen import Listing
    from fleet.supervisor.operator import Operator, Shortage

GROUP = "run"

POLL_S = 0.1
SAID = {Talk.CONTINUED: "conversation continued", Talk.NEW: "new conversation"}
TOLD = {Outcome.DONE: Told.STARTED, Outcome.EXISTS: Told.RUNNING}
WATCHDOG_SHARE = 6  # the watchdog's first tick may take this part of --timeout: 15 s of 90
# STALE: the sequence is complete, so there is nothing to start.
FINE = {Outcome.DONE, Outcome.EXISTS, Outcome.STALE}

WAITING = (
    flag("--no-wait", "do not wait until the agents are ready"),
    timeout(90, "until all agents are ready"),
)
ARGUMENTS = (
    members("agents, services or `watchdog` (default: all enabled, and the watchdog)"),
    flag("--dry-run", "print what would be started, and start nothing"),
    *WAITING,
)


class Spared(NamedTuple):
    """Why a bare `up` does not start an agent, in a sentence too, and when that ends."""

    why: Left
    said: str
    until: float | None = None


class Readiness(NamedTuple):
    """Whether an agent is ready, and what it is or why not."""

    ready: bool
    what: str


def run(args: argparse.Namespace, io: Io) -> int:
    """Start what should run. Exit 1 when an agent or the watchdog is not ready in time."""
    fleets = fleets_of(io)
    declared, text = fleets.declared(args, io)
    fleet, overrides = config.override(declared, fleets.environ)
    operator = fleets.operator(fleet)
    operator.servers.require_tmux()
    specs = chosen(fleet, args.names)
    if any(s.is_loop for s in specs):
        fleets.require_ground(fleet, text)  # a loop that stands on nothing is not begun
    operator.end_lost_clients()
    _refuse(operator)
    there = operator.listing()
    refuse_crowd(operator, specs, there)
    left = {} if args.names else _left(operator, specs, there)
    if args.dry_run:
        return _dry_run(operator, specs, there, left, io, as_json=args.json)
    another = operator.make_room()
    fleets.keep(declared, text, io.clock.wall())
    away = [s for s in specs if s.name not in left and s.clone and not os.path.lexists(s.dir)]
    homeless = _clone(fleet, away, io)
    if another or away:  # another server, or minutes later
        there = operator.listing()
    results = _start(operator, specs, there, homeless, left, bare=not args.names)
    say_overrides(overrides, results, io)
    _say_strays(operator, there, io)
    say_conversations(fleet, specs, results, io)
    _say_pointers(operator, specs, results, io)
    why = ""
    if not args.names or WATCHDOG in args.names:
        why = start_watchdog(operator, io, first_tick(args), quiet=not args.names)
    else:
        say_of_watchdog(operator, io)
    begun = [s for s in specs if s.name in results and results[s.name].outcome in TOLD]
    states = {} if args.no_wait else wait_ready(operator, begun, args.timeout)
    code = report(fleet, specs, results, states, io, left=left, as_json=args.json)
    return 1 if why else code


def first_tick(args: argparse.Namespace) -> float:
    """How many seconds the watchdog has for its first tick; 0.0: the verb does not wait."""
    return 0.0 if args.no_wait else args.timeout / WATCHDOG_SHARE


def chosen(fleet: Fleet, names: Sequence[str]) -> list[Member]:
    """The members meant: those named, or everything that is enabled."""
    if not names:
        return [s for s in fleet.members if s.enabled]
    for name in names:
        session_of(fleet, name)  # fails with the nearest name, before anything is touched
    return [member for name in dict.fromkeys(names) if (member := fleet.member(name)) is not None]


# --- what is refused, what is left ---------------------------------------------------------------------


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


def refuse_crowd(operator: Operator, specs: Sequence[Member], there: Listing) -> None:
    """A tmux server without open files to spare answers no verb any more, not even `down`."""
    short = operator.shortage(specs, there)
    if short is None:
        return
    raise Fail(f"{crowd(short)}; nothing was started", hint=widening(short, users=operator.server.is_users))


def crowd(short: Shortage) -> str:
    """What is too much for what."""
    who = f"the tmux server (process {short.server})" if short.server else "this shell"
    return f"{short.sessions} sessions need {short.need} open files, and {who} may have {short.limit}"


def widening(short: Shortage, *, users: bool) -> str:
    """What to type so that there are enough open files."""
    if not short.server:
        return f"sudo prlimit --pid $$ --nofile={short.need}"
    if not users and descriptors.ours().hard >= short.need:
        return "agents.py down, then agents.py up: this shell may have enough"
    found = descriptors.of(short.server)
    if found is not None and found.hard >= short.need:
        return f"prlimit --pid {short.server} --nofile={short.need}:"  # the soft one alone
    return f"sudo prlimit --pid {short.server} --nofile={short.need}"


def refuse_earlier(operator: Operator) -> None:
    """Two fleets in one log_dir would take each other's records for their own."""
    if earlier := operator.earlier():
        raise Fail(
            f"session_prefix was changed under a running fleet: {', '.join(earlier)}",
            hint="put the old one back, `down`, then change it",
        )


def _left(operator: Operator, specs: Sequence[Member], there: Listing) -> dict[str, Spared]:
    """What a bare `up` does not start, by name."""
    wall, panes = operator.world.clock.wall(), operator.panes(there)
    entries = operator.house.desired.load().entries
    agents = [s for s in operator.fleet.agents if s.enabled]
    memories = {s.name: operator.records.agent(s.name, s.session) for s in (*agents, *specs)}
    limits = [(a, limit.until) for a in agents if (limit := memories[a.name].limit) is not None]
    found: dict[str, Spared] = {}
    for spec in specs:
        name, until = spec.name, limited_until(spec, limits, wall)
        why = left_as_it_is(
            spec,
            entries.get(name),
            panes.get(spec.session),
            operator.records.run(spec.session),
            memories[name],
            limited=until > wall,
            wall=wall,
        )
        match why:
            case Left.PAUSED:
                ends = entries[name].until
                said = f"`unpause {name}` or `up {name}` lets it go on"
                said = f"until {day_and_time(ends, wall)}; {said} now" if ends else said
                found[name] = Spared(why, said, ends or None)
            case Left.FINISHED:
                found[name] = Spared(why, f"its task is done; `up {name}` runs it again")
            case Left.LIMITED:
                then = ", and starts then" if spec.resume_on_reset else ""
                said = f"until {day_and_time(until, wall)}{then}; `up {name}` starts it now"
                found[name] = Spared(why, said, until)
            case None:
                pass
    return found


def _dry_run(
    operator: Operator,
    specs: Sequence[Member],
    there: Listing,
    left: Mapping[str, Spared],
    io: Io,
    *,
    as_json: bool,
) -> int:
    panes = operator.panes(there)
    rows = []
    for spec in specs:
        pane = panes.get(spec.session)
        what = "start"
        if pane is not None:
            what = "replace the dead pane" if pane.dead else "leave: it runs"
        if spec.name in left:
            what = f"leave: it is {left[spec.name].why}"
        rows.append({"name": spec.name, "session": spec.session, "would": what})
    if as_json:
        io.json({"plan": rows})
    else:
        io.table(("name", "session", "would"), [tuple(r.values()) for r in rows])
    return 0


# --- starting ------------------------------------------------------------------------------------------


def _clone(fleet: Fleet, specs: Sequence[Member], io: Io) -> dict[str, str]:
    """Agents that live in a clone get it before they start; name to why one did not."""
    failed, said = {}, set()
    for spec in specs:
        io.note(f"{spec.name}: cloning {spec.clone} into {spec.dir}")
        try:
            shared = make_clone(spec.clone, spec.dir, f"{fleet.log_dir}/repos")
        except (CloneError, OSError, subprocess.TimeoutExpired) as error:
            failed[spec.name] = f"no clone: {error}; correct `clone`, or make {spec.dir} yourself"
            continue
        if shared and shared not in said:
            said.add(shared)
            io.note(f"clones of {spec.clone} push to {shared}: `git pull` from there to get their work")
    return failed


def _start(
    operator: Operator,
    specs: Sequence[Member],
    there: Listing,
    homeless: dict[str, str],
    left: Collection[str],
    *,
    bare: bool,
) -> dict[str, Result]:
    """Start; an agent without a clone gets a desired state too, so that the watchdog tries again."""
    names = [s.name for s in specs]
    meant = [s for s in specs if s.name not in homeless and s.name not in left]
    running = operator.live([s.name for s in meant], there)
    absent = [s for s in meant if s.name not in running]
    placeless = operator.without_phase(absent, there, bare=bare)
    called = [s for s in absent if s.name not in placeless]

    def wish(desired: Desired) -> Desired:
        changes = {} if bare else {"paused": False, "frozen": False}
        wanted = desired.set(names, want=Want.UP, **changes)
        return wanted.call(s.name for s in called).pardon(names, window=False, budget=bare)

    if not bare:
        operator.thaw(names)
    with operator.lease(names, "up", wish):
        results = with_owners(operator, Deputy(operator, called, there).bring_up())
    results |= dict.fromkeys(running, Result(Outcome.EXISTS))
    return results | placeless | {n: Result(Outcome.REFUSED, why) for n, why in homeless.items()}


def with_owners(operator: Operator, results: Mapping[str, Result]) -> dict[str, Result]:
    """The results, with the owner of each session whose name something else has taken."""
    refused = {n for n, done in results.items() if done.outcome is Outcome.REFUSED}
    specs = [s for s in operator.fleet.members if s.name in refused]
    owners = operator.foreign(specs, operator.listing()) if specs else {}
    said = {
        n: Result(Outcome.REFUSED, f"a session of this name is not ours: {owner}; it is left alone")
        for n, owner in owners.items()
    }
    return {**results, **said}


# --- what is said of it --------------------------------------------------------------------------------


def _say_pointers(operator: Operator, specs: Sequence[Member], results: dict[str, Result], io: Io) -> None:
    """A kickoff that no command line can hold is only pointed to: its author should know."""
    for spec in specs:
        if spec.name in results and results[spec.name].ok and spec.has_screen:
            path = operator.house.path(f"kickoff-{spec.session}.txt")
            by_file = operator.fleet.backend_of(spec).prompt_delivery == "exec"
            kickoff = None if by_file else operator.world.disk.stat(path)
            size = kickoff.size if kickoff is not None else 0
            if size > ARGUMENT_CAP:
                io.warn(f"{spec.name}: its kickoff has {size // 1000} kB: its prompt is to read {path}")


def _say_strays(operator: Operator, there: Listing, io: Io) -> None:
    """Warn of sessions that the file no longer names; they run on, perhaps beside their successors."""
    for name, session in operator.strays(there).items():
        said = f"{name}: session {session} is ours, but agents.toml does not name it"
        io.warn(f"{said}: `agents.py down {name}` stops it")


def say_conversations(fleet: Fleet, specs: Sequence[Member], results: Mapping[str, Result], io: Io) -> None:
    """Whether the started go on where they were, once, for all of them."""
    talks = {s.name: talk(fleet, s, results.get(s.name)) for s in specs}
    for word, said in SAID.items():
        if names := [name for name, one in talks.items() if one == word]:
            io.note(f"{said}: {', '.join(names)}")


def talk(fleet: Fleet, spec: Member, done: Result | None) -> str:
    """What became of a started agent's conversation; "" where its CLI cannot continue one."""
    if done is None or not done.ok or done.run is None or not fleet.backend_of(spec).supports_resume:
        return ""
    return Talk.CONTINUED if done.run.resumed else Talk.NEW


def say_overrides(overrides: Sequence[Override], results: dict[str, Result], io: Io) -> None:
    """What the caller's environment changed, and what it could not."""
    for one in overrides:
        done = results.get(one.agent)
        if done is None:
            why = one.text if not one.agent else f"{one.agent} was not to be started"
            io.note(f"{one.variable} has no effect: {why}")
        elif done.outcome is Outcome.EXISTS:
            io.note(f"{one.variable} has no effect: {one.agent} was running already; `restart` it")
        elif done.ok:
            io.note(f"{one.variable}: {one.agent} starts with {one.text}")


def wait_ready(operator: Operator, specs: Sequence[Member], timeout: float) -> dict[str, Readiness]:
    """Look until each is ready, dead or out of time."""
    states: dict[str, Readiness] = {}
    waiting = sorted(specs, key=lambda s: s.name)
    if not waiting:
        return states
    clock = operator.world.clock
    dog = observer(operator.fleet, [s.name for s in specs], operator.world)
    for _ in polls(clock, timeout, POLL_S):
        look, decided = dog.glance(), dog.mind.decided
        for spec in waiting:
            if spec.name in decided:
                found = _readiness(spec, look.seen[spec.name], decided[spec.name], clock.wall())
                states |= {spec.name: found} if found else {}
        waiting = [s for s in waiting if s.name not in states]
        if not waiting:
            break
    for name in (s.name for s in waiting):
        decision = dog.mind.decided.get(name)
        why = decision.shown.reason if decision else "not seen"
        states[name] = Readiness(ready=False, what=f"not ready after {timeout:.0f} s: {why}")
    return states


def _readiness(spec: Member, seen: AgentSeen, decision: AgentDecision, wall: float) -> Readiness | None:
    """Of a started agent; None while it may still become ready."""
    pane, shown, memory = seen.pane, decision.shown, decision.memory
    gone = not seen.blind and (pane is None or pane.dead)
    if memory.ready and not gone and not memory.fatal:
        limit = memory.limit if shown.detail is Detail.LIMITED else None
        until = f" until {day_and_time(limit.until, wall)}" if limit else ""
        return Readiness(ready=True, what=f"{shown.detail}{until}")
    if gone and not memory.fatal:  # a task may have run and ended before we looked: that is success
        return Readiness(spec.is_task and pane is not None and pane.exit_code == 0, shown.reason)
    if memory.fatal or shown.detail is Detail.ASKING:
        return Readiness(ready=False, what=shown.reason)
    return None


def report(
    fleet: Fleet,
    specs: Sequence[Member],
    results: Mapping[str, Result],
    states: Mapping[str, Readiness],
    io: Io,
    *,
    left: Mapping[str, Spared] | None = None,
    as_json: bool,
) -> int:
    """One line a member, and whether all is well."""
    left = left or {}
    rows: list[dict[str, Any]] = []
    fine = True
    for spec in specs:
        row: dict[str, Any] = {"name": spec.name}
        if spared := left.get(spec.name):
            row |= {"result": spared.why, "ready": spared.why is Left.FINISHED, "detail": spared.said}
            row |= {"conversation": ""} | ({"until": spared.until} if spared.until else {})
        else:
            done = results[spec.name]
            ready, what = states.get(spec.name, Readiness(done.outcome in FINE, done.why))
            fine = fine and ready and done.outcome in FINE
            row["result"] = TOLD.get(done.outcome, Told.NOT_STARTED)
            row |= {"ready": ready and done.outcome in TOLD, "detail": what or done.why}
            row["conversation"] = talk(fleet, spec, done)
        rows.append(row)
    if as_json:
        io.json({"ok": fine, "agents": rows})
        return 0 if fine else 1
    words = {True: "ready", False: "NOT READY"}
    table = [
        (r["name"], r["result"], "" if r["name"] in left else words[r["ready"]], r["detail"]) for r in rows
    ]
    if table:
        io.table(("name", "up", "", "detail"), table)
    if not fine:
        io.note(f"for details: agents.py status --config {fleet.config_path}")
    return 0 if fine else 1
