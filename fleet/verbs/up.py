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

import argparse
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

from fleet import __version__, config
from fleet.core.agent.bringup import Left, left_as_it_is, limited_until
from fleet.core.decision import Result
from fleet.core.desired import Desired, Want
from fleet.core.outline import WATCHDOG
from fleet.core.starts import Talk
from fleet.core.words import Detail, Outcome, Told
from fleet.host import descriptors
from fleet.host.clone import CloneError, make_clone
from fleet.host.locks import is_stale
from fleet.supervisor.deputy import Deputy, observer
from fleet.supervisor.launch import ARGUMENT_CAP
from fleet.supervisor.operator import watchdog_argv
from fleet.verbs.common import Fail, Io, seconds, session_of
from fleet.verbs.desk import desk_of
from fleet.verbs.last_view import view_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fleet.config.override import Override
    from fleet.core.model import Fleet, Member
    from fleet.supervisor.operator import Operator, Shortage

GROUP = "run"

READY_S = 90.0
POLL_S = 0.1
SAID = {"continued": "conversation continued", "new": "new conversation"}
WATCHDOG_SHARE = 6  # the watchdog's first tick may take this part of --timeout: 15 s of 90


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names, and how to go about it."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="agents, services or `watchdog` (default: all enabled, and the watchdog)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be started, and start nothing"
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait until the agents are ready")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=READY_S,
        metavar="SECONDS",
        help="how long to wait until all agents are ready (default: 90)",
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """Start what should run. Exit 1 when an agent or the watchdog is not ready in time."""
    desk = desk_of(io)
    declared, text = desk.declared(args, io)
    fleet, overrides = config.override(declared, desk.environ)
    operator = desk.operator(fleet)
    operator.servers.require_tmux()
    specs = chosen(fleet, args.names)
    if any(s.is_loop for s in specs):
        desk.require_ground(fleet, text)  # a loop that stands on nothing is not begun
    operator.end_strays()
    _refuse(operator)
    refuse_crowd(operator, specs)
    left = {} if args.names else _left(operator, specs)
    if args.dry_run:
        return _dry_run(operator, specs, left, io, as_json=args.json)
    operator.make_room()
    desk.keep(declared, text, io.clock.wall())
    homeless = _clone(fleet, [s for s in specs if s.name not in left], io)
    results = _start(operator, specs, homeless, left, bare=not args.names)
    say_overrides(overrides, results, io)
    _say_orphans(operator, io)
    say_conversations(fleet, specs, results, io)
    _say_pointers(operator, specs, results, io)
    why = ""
    if not args.names or WATCHDOG in args.names:
        why = start_watchdog(operator, io, first_tick(args), quiet=not args.names)
    else:
        say_of_watchdog(operator, io)
    begun = [s for s in specs if _is_up(results, s)]
    states = {} if args.no_wait else wait_ready(operator, begun, args.timeout)
    code = report(fleet, specs, results, states, io, left=left, as_json=args.json)
    return 1 if why else code


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


def _say_orphans(operator: Operator, io: Io) -> None:
    """Warn of sessions that the file no longer names; they run on, perhaps beside their successors."""
    for name, session in operator.orphans().items():
        said = f"{name}: session {session} is ours, but agents.toml does not name it"
        io.warn(f"{said}: `agents.py down {name}` stops it")


def say_conversations(fleet: Fleet, specs: Sequence[Member], results: Mapping[str, Result], io: Io) -> None:
    """Whether the started go on where they were, once, for all of them."""
    talks = {s.name: talk(fleet, s, results.get(s.name)) for s in specs}
    for word, said in SAID.items():
        if names := [name for name, one in talks.items() if one == word]:
            io.note(f"{said}: {', '.join(names)}")


def talk(fleet: Fleet, spec: Member, done: Result | None) -> str:
    """What became of a started agent's conversation; "" where its CLI cannot go on with one."""
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


def chosen(fleet: Fleet, names: Sequence[str]) -> list[Member]:
    """The members meant: those named, or everything that is enabled."""
    members: dict[str, Member] = {s.name: s for s in fleet.members}
    if not names:
        return [s for s in members.values() if s.enabled]
    for name in names:
        session_of(fleet, name)  # fails with the nearest name, before anything is touched
    return [members[n] for n in dict.fromkeys(names) if n in members]


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


def refuse_crowd(operator: Operator, specs: Sequence[Member]) -> None:
    """A tmux server without open files to spare answers no verb any more, not even `down`."""
    short = operator.shortage(specs)
    if short is None:
        return
    who = f"the tmux server (process {short.server})" if short.server else "this shell"
    raise Fail(
        f"{short.sessions} sessions need {short.need} open files, and {who} may have {short.limit}; "
        "nothing was started",
        hint=widening(short, users=operator.server.is_users),
    )


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


def _clone(fleet: Fleet, specs: Sequence[Member], io: Io) -> dict[str, str]:
    """Agents that live in a clone get it before they start; name to why one did not."""
    wanted = [s for s in specs if s.clone and not os.path.lexists(s.dir)]
    if not wanted:
        return {}
    failed, said = {}, set()
    for spec in wanted:
        io.note(f"{spec.name}: cloning {spec.clone} into {spec.dir}")
        try:
            shared = make_clone(spec.clone, spec.dir, f"{fleet.log_dir}/repos")
            if shared and shared not in said:
                said.add(shared)
                io.note(f"clones of {spec.clone} push to {shared}: `git pull` from there to get their work")
        except (CloneError, OSError, subprocess.TimeoutExpired) as error:
            failed[spec.name] = f"no clone: {error}; correct `clone`, or make {spec.dir} yourself"
    return failed


def _left(operator: Operator, specs: Sequence[Member]) -> dict[str, tuple[Left, str, float | None]]:
    """What a bare `up` does not start: name to the reason, a sentence, and when that ends."""
    wall, panes = operator.world.clock.wall(), operator.panes()
    entries = operator.house.desired.load().entries
    agents = [s for s in operator.fleet.agents if s.enabled]
    memories = {s.name: operator.records.agent(s.name, s.session) for s in (*agents, *specs)}
    limits = [(a, limit.until) for a in agents if (limit := memories[a.name].limit) is not None]
    found: dict[str, tuple[Left, str, float | None]] = {}
    for spec in specs:
        until = limited_until(spec, limits, wall)
        why = left_as_it_is(
            spec,
            entries.get(spec.name),
            panes.get(spec.session),
            operator.records.run(spec.session),
            memories[spec.name],
            limited=until > wall,
            wall=wall,
        )
        match why:
            case Left.PAUSED:
                ends = entries[spec.name].until
                said = f"`unpause {spec.name}` or `up {spec.name}` lets it go on"
                said = f"until {clock(ends)}; {said} now" if ends else said
                found[spec.name] = (why, said, ends or None)
            case Left.FINISHED:
                found[spec.name] = (why, f"its task is done; `up {spec.name}` runs it again", None)
            case Left.LIMITED:
                then = ", and starts then" if spec.resume_on_reset else ""
                said = f"until {clock(until)}{then}; `up {spec.name}` starts it now"
                found[spec.name] = (why, said, until)
            case None:
                pass
    return found


def clock(wall: float) -> str:
    """A moment, as a person reads it."""
    return time.strftime("%a %H:%M", time.localtime(wall))


def _start(
    operator: Operator,
    specs: Sequence[Member],
    homeless: dict[str, str],
    left: Collection[str],
    *,
    bare: bool,
) -> dict[str, Result]:
    """Start; an agent without a clone gets a desired state too, so that the watchdog tries again."""
    names = [s.name for s in specs]
    meant = [s for s in specs if s.name not in homeless and s.name not in left]
    running = operator.live([s.name for s in meant])
    absent = [s for s in meant if s.name not in running]
    placeless = operator.without_phase(absent, bare=bare)
    called = [s for s in absent if s.name not in placeless]

    def wish(desired: Desired) -> Desired:
        changes = {} if bare else {"paused": False, "frozen": False}
        wanted = desired.set(names, want=Want.UP, **changes)
        return wanted.call(s.name for s in called).pardon(names, window=False, budget=bare)

    if not bare:
        operator.thaw(names)
    with operator.lease(names, "up", wish):
        results = with_owners(operator, Deputy(operator, called).bring_up())
    results |= dict.fromkeys(running, Result(Outcome.EXISTS))
    return results | placeless | {n: Result(Outcome.REFUSED, why) for n, why in homeless.items()}


def with_owners(operator: Operator, results: Mapping[str, Result]) -> dict[str, Result]:
    """The results, with the owner of each session whose name something else has taken."""
    refused = {n for n, done in results.items() if done.outcome is Outcome.REFUSED}
    owners = operator.foreign([s for s in operator.fleet.members if s.name in refused]) if refused else {}
    said = {
        n: Result(Outcome.REFUSED, f"a session of this name is not ours: {owner}; it is left alone")
        for n, owner in owners.items()
    }
    return {**results, **said}


def start_watchdog(operator: Operator, io: Io, patience: float, *, quiet: bool = False) -> str:
    """The supervisor, looking: "" or why not, which is said. It has `patience` seconds for its first tick."""
    holder = operator.locks.holder()
    if holder is not None and (silence := _silence(operator)):
        io.warn(f"the watchdog (process {holder.pid}) has not ticked for {silence:.0f} s: `up` replaces it")
        operator.stop_watchdog()
    elif holder is not None:
        _say_version(operator, io)
    why = operator.start_watchdog(watchdog_argv(operator.fleet))
    if not why and patience and not _beats(operator, patience):
        why = f"no tick within {patience:.0f} s; see `agents.py logs watchdog`"
    if why:
        io.error(f"the watchdog could not be started: {why}", hint="agents.py doctor")
    elif not quiet:
        io.note("the watchdog runs")
    return why


def first_tick(args: argparse.Namespace) -> float:
    """How many seconds the watchdog has for its first tick; 0.0: the verb does not wait."""
    return 0.0 if args.no_wait else args.timeout / WATCHDOG_SHARE


def _beats(operator: Operator, patience: float) -> bool:
    """Has the watchdog looked since we asked for it?"""
    clock, path = operator.world.clock, operator.house.path("heartbeat")
    deadline = clock.mono() + patience
    while clock.mono() < deadline:
        holder, beat = operator.locks.holder(), operator.world.disk.stat(path)
        if holder is not None and beat is not None and beat.mtime_ns / 1e9 >= holder.since:
            return True
        clock.sleep(POLL_S / 2)
    return False


def say_of_watchdog(operator: Operator, io: Io) -> None:
    """What a verb that does not start the watchdog has found in its place."""
    holder = operator.locks.holder()
    if holder is None:
        io.note("no watchdog runs: no agent is restarted until `agents.py up` starts one")
    elif silence := _silence(operator):
        said = f"the watchdog (process {holder.pid}) has not ticked for {silence:.0f} s"
        io.warn(f"{said}: no agent is restarted until `agents.py restart watchdog` replaces it")
    else:
        _say_version(operator, io)


def _silence(operator: Operator) -> float:
    """For how many seconds the watchdog has not looked; 0.0 while that is no reason to worry."""
    beat = operator.world.disk.stat(operator.house.path("heartbeat"))
    if beat is None:
        return 0.0  # it begins, or its state was just taken away
    age = operator.world.clock.wall() - beat.mtime_ns / 1e9
    return age if is_stale(age, operator.fleet.watchdog.signal_interval) else 0.0


def _say_version(operator: Operator, io: Io) -> None:
    runs = (view_in(operator.world.disk, operator.house.state_dir) or {}).get("version", "")
    if runs not in {"", __version__}:
        said = f"the watchdog runs version {runs}, this engine is {__version__}"
        io.warn(f"{said}: run `agents.py restart watchdog`")


def _is_up(results: dict[str, Result], spec: Member) -> bool:
    done = results.get(spec.name)
    return done is not None and (done.ok or done.outcome is Outcome.EXISTS)


def wait_ready(operator: Operator, specs: Sequence[Member], timeout: float) -> dict[str, tuple[bool, str]]:
    """Watch until each is ready, dead or out of time: name to (ready, what it is)."""
    fleet, time_is = operator.fleet, operator.world.clock
    dog = observer(fleet, [s.name for s in specs], operator.world)
    states: dict[str, tuple[bool, str]] = {}
    deadline = time_is.mono() + timeout
    waiting = {s.name for s in specs}
    while waiting:
        look = dog.glance()
        for name in sorted(waiting):
            decision, seen = dog.mind.decided.get(name), look.seen[name]
            if decision is None:
                continue
            gone = not seen.blind and (seen.pane is None or seen.pane.dead)
            shown, memory = decision.shown, decision.memory
            if memory.fatal:
                states[name] = (False, shown.reason)
            elif memory.ready and not gone:
                limited = memory.limit if shown.detail is Detail.LIMITED else None
                ends = f" until {clock(limited.until)}" if limited else ""
                states[name] = (True, f"{shown.detail}{ends}")
            elif gone:
                states[name] = (_finished(fleet, name, seen), shown.reason)
            elif shown.detail is Detail.ASKING:
                states[name] = (False, shown.reason)
        waiting -= set(states)
        if time_is.mono() >= deadline:
            break
        if waiting:
            time_is.sleep(POLL_S)
    for name in waiting:
        decision = dog.mind.decided.get(name)
        why = decision.shown.reason if decision else "not seen"
        states[name] = (False, f"not ready after {timeout:.0f} s: {why}")
    return states


def _finished(fleet: Fleet, name: str, seen: object) -> bool:
    """A task may have run and ended before we looked: that is success."""
    agent = fleet.agent(name)
    pane = getattr(seen, "pane", None)
    return agent is not None and agent.is_task and pane is not None and pane.exit_code == 0


def report(
    fleet: Fleet,
    specs: Sequence[Member],
    results: dict[str, Result],
    states: dict[str, tuple[bool, str]],
    io: Io,
    *,
    left: Mapping[str, tuple[Left, str, float | None]] | None = None,
    as_json: bool,
) -> int:
    """One line a member, and whether all is well."""
    rows: list[dict[str, Any]] = []
    fine = True
    for spec in specs:
        if left and spec.name in left:
            why, said, until = left[spec.name]
            row = {"name": spec.name, "result": f"{why}", "ready": why == "finished", "detail": said}
            rows.append(row | {"conversation": ""} | ({"until": until} if until else {}))
            continue
        done = results[spec.name]
        fits = done.outcome in {Outcome.DONE, Outcome.EXISTS, Outcome.STALE}
        ready, what = states.get(spec.name, (fits, done.why))
        known = {Outcome.DONE: Told.STARTED, Outcome.EXISTS: Told.RUNNING}
        started = known.get(done.outcome, Told.NOT_STARTED)
        good = fits and ready
        fine = fine and good
        rows.append(
            {
                "name": spec.name,
                "result": started,
                "ready": ready and started is not Told.NOT_STARTED,
                "detail": what or done.why,
                "conversation": talk(fleet, spec, done),
            }
        )
    if as_json:
        io.json({"ok": fine, "agents": rows})
        return 0 if fine else 1
    table = [(r["name"], r["result"], _word(r, left or ()), r["detail"]) for r in rows]
    if table:
        io.table(("name", "up", "", "detail"), table)
    if not fine:
        io.note(f"for details: agents.py status --config {fleet.config_path}")
    return 0 if fine else 1


def _word(row: Mapping[str, Any], left: Collection[str]) -> str:
    if row["name"] in left:
        return ""
    return "ready" if row["ready"] else "NOT READY"


def _dry_run(
    operator: Operator,
    specs: Sequence[Member],
    left: Mapping[str, tuple[Left, str, float | None]],
    io: Io,
    *,
    as_json: bool,
) -> int:
    panes = operator.panes()
    rows = []
    for spec in specs:
        pane = panes.get(spec.session)
        what = "start"
        if pane is not None:
            what = "replace the dead pane" if pane.dead else "leave: it runs"
        if spec.name in left:
            what = f"leave: it is {left[spec.name][0]}"
        rows.append({"name": spec.name, "session": spec.session, "would": what})
    if as_json:
        io.json({"plan": rows})
    else:
        io.table(("name", "session", "would"), [tuple(r.values()) for r in rows])
    return 0
