"""Actions with consequences: files, commands, commits, children, waiting for others, ending, choosing.

Each is called as those in `showing` are.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fleet.backends.scripted import records
from fleet.scripted_agent import child_kinds, outside
from fleet.scripted_agent.ends import Ended, set_name

if TYPE_CHECKING:  # the player imports the table of actions
    from fleet.scripted_agent.player import Agent
    from fleet.scripted_agent.script import Step

POLL_S = 0.05


def do_run(agent: Agent, command: str, step: Step) -> None:
    """Run a shell command and show its output; {status} and {output} hold the result."""
    agent.show(agent.face.tool, agent.face.said_rest, str(step.get("tool", f"Run({command})")))
    _command(
        agent, ["sh", "-c", str(command)], str(step.get("text", "Running")), quiet=bool(step.get("quiet"))
    )


def _command(agent: Agent, argv: list[str], text: str, *, quiet: bool = False) -> None:
    """Run a program with the screen alive; its result goes into the slots `status` and `output`."""
    job = outside.Job(argv)
    try:
        agent.busy(None, job.finished, "working", text)
    finally:
        job.stop()
    agent.slots |= {"status": str(job.status), "output": job.output.strip()}
    if not quiet:
        shown = job.output.strip().split("\n")[-8:]
        agent.show(
            agent.face.output, agent.face.output_rest, "\n".join(shown) if shown != [""] else "(no output)"
        )


def do_write(agent: Agent, path: str, step: Step) -> None:
    """Write a file, whole and at once."""
    outside.put(str(path), str(step.get("text", "")), append=False)
    agent.show(agent.face.tool, agent.face.said_rest, f"Write({path})")


def do_append(agent: Agent, path: str, step: Step) -> None:
    """Add to a file."""
    outside.put(str(path), str(step.get("text", "")), append=True)
    agent.show(agent.face.tool, agent.face.said_rest, f"Append({path})")


def do_remove(_: Agent, path: str, __: Step) -> None:
    """Delete a file."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(str(path))


def do_commit(agent: Agent, subject: str, step: Step) -> None:
    """Commit everything in the working tree."""
    agent.show(agent.face.tool, agent.face.said_rest, f"Commit({subject})")
    for argv in outside.commit_commands(str(subject), step):
        _command(agent, argv, "Committing", quiet=True)
        if agent.slots["status"] != "0":
            agent.show(agent.face.output, agent.face.output_rest, agent.slots["output"])


def do_usage(agent: Agent, tokens: int, step: Step) -> None:
    """Append a usage record to a transcript.

    It goes to AO_TRANSCRIPT, or where the reader that the profile names looks for it, else nowhere.
    """
    path = records.transcript_path(str(step.get("transcript", "")), agent.conversation)
    if path:
        outside.put(
            path, records.usage_line(agent.conversation, agent.slots["model"], int(tokens), step), append=True
        )


def do_spawn(agent: Agent, kinds: Any, _: Step) -> None:
    """Start children that may outlive it; true starts one of each kind.

    Kinds: plain, background, nohup, setsid, ignores_hup, own_group, handles_hup, daemon.
    """
    wanted = [kinds] if isinstance(kinds, str) else kinds
    if kinds is True or kinds == "all":
        wanted = list(child_kinds.KINDS)
    for kind in wanted:
        child_kinds.spawn(str(kind), f"{agent.record}/children" if agent.record else "")


def do_wait_message(agent: Agent, pattern: Any, step: Step) -> None:
    """Wait at the prompt for a message, kept in {message}."""
    timeout = float(step["timeout"]) if "timeout" in step else None
    deadline = None if timeout is None else time.monotonic() + agent.real(timeout)
    while True:
        left = None if deadline is None else (deadline - time.monotonic()) * agent.speed
        heard = agent.hear(left)
        agent.slots["message"] = heard or ""
        if heard is None or pattern is True or re.search(str(pattern), heard):
            return


def _wait(agent: Agent, step: Step, condition: Callable[[], bool], text: str) -> None:
    timeout = float(step["timeout"]) if "timeout" in step else None
    if step.get("busy"):
        met = agent.busy(timeout, condition, "working", text)
    else:
        agent.mode = "idle"
        met = agent.pause(timeout, until=condition, poll=POLL_S)
    agent.slots["met"] = "yes" if met else "no"


def do_wait_file(agent: Agent, path: str, step: Step) -> None:
    """Wait until a file exists. {met} says yes or no."""
    pattern = re.compile(str(step.get("contains", "")), re.MULTILINE)
    _wait(agent, step, lambda: outside.file_has(str(path), pattern), f"Waiting for {path}")


def do_wait_commit(agent: Agent, pattern: str, step: Step) -> None:
    """Wait for a commit whose subject matches, kept in {commit}."""
    watch = outside.CommitWatch(
        re.compile(str(pattern)), str(step.get("repo", ".")), old=bool(step.get("old"))
    )
    _wait(agent, step, watch.seen, "Waiting for a commit")
    agent.slots["commit"] = watch.subject


def do_ignore(agent: Agent, value: bool, _: Step) -> None:  # noqa: FBT001 - the value of a key in a script
    """Ignore what is typed (it is still recorded)."""
    agent.deaf = bool(value)


def do_hang(agent: Agent, seconds: Any, _: Step) -> None:
    """Hang: read nothing, draw nothing."""
    agent.paint()
    agent.hung = True
    time.sleep(1e9 if seconds is True else agent.real(float(seconds)))
    agent.hung = False


def do_name(_: Agent, name: str, __: Step) -> None:
    """Change the process name that the system shows."""
    set_name(str(name))


def do_signals(_: Agent, names: list[str], __: Step) -> None:
    """Ignore signals from now on."""
    for name in names:
        signal.signal(signal.Signals[f"SIG{str(name).removeprefix('SIG')}"], signal.SIG_IGN)


def do_exit(_: Agent, code: Any, step: Step) -> None:
    """Leave with that exit code."""
    raise Ended(0 if code is True else int(code), argv=["sh", "-c", step["last"]] if "last" in step else None)


def do_die(_: Agent, name: str, __: Step) -> None:
    """Die of a signal."""
    raise Ended(signum=signal.Signals[f"SIG{str(name).removeprefix('SIG')}"])


def do_shell(_: Agent, value: Any, __: Step) -> None:
    """Leave a bare shell behind, as a crashed wrapper does."""
    raise Ended(argv=[value if isinstance(value, str) else "sh"])


def do_become(_: Agent, command: Any, __: Step) -> None:
    """Become another program, in the same process."""
    raise Ended(
        argv=[str(word) for word in command] if isinstance(command, list) else ["sh", "-c", f"exec {command}"]
    )


def do_repeat(agent: Agent, times: Any, step: Step) -> None:
    """Repeat steps; {n} counts from 1."""
    count = 0
    while times is True or count < int(times):
        count += 1
        agent.slots["n"] = str(count)
        agent.perform(step.get("steps", []))


def do_if(agent: Agent, subject: str, step: Step) -> None:
    """Choose by what a text says."""
    met = re.search(str(step.get("has", ".")), str(subject)) is not None
    agent.perform(step.get("then", []) if met else step.get("else", []))


def do_if_file(agent: Agent, path: str, step: Step) -> None:
    """Choose by what a file says."""
    met = outside.file_has(str(path), re.compile(str(step.get("contains", "")), re.MULTILINE))
    agent.perform(step.get("then", []) if met else step.get("else", []))


def do_once(agent: Agent, name: str, step: Step) -> None:
    """Do something only the first time, also across restarts of the agent."""
    if outside.first_time(agent.record, str(name), agent.slots):
        agent.perform(step.get("steps", []))
    else:
        agent.perform(step.get("else", []))


def do_set(agent: Agent, name: str, step: Step) -> None:
    """Remember a text under a name."""
    agent.slots[str(name)] = str(step.get("to", ""))
