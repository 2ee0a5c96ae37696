"""How each action is done. It is called with the agent, the value of its own key, and the whole step.

Waiting is done through `agent.pause` and `agent.hear`, which keep the screen and the keyboard alive.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fleet.scripted import children, effects

if TYPE_CHECKING:
    from fleet.scripted.player import Agent
    from fleet.scripted.script import Step
    from fleet.scripted.terminal import Terminal

POLL_S = 0.05


class Interrupted(Exception):
    """Somebody pressed Escape or Ctrl-C while it worked."""


class Ended(Exception):
    """The program is over: by a code, by a signal, or by becoming another program."""

    def __init__(self, code: int = 0, signum: int = 0, argv: list[str] | None = None) -> None:
        super().__init__(code, signum, argv)
        self.code = code
        self.signum = signum
        self.argv = argv

    def finish(self, terminal: Terminal) -> int:
        """Do it; the code to exit with, where we get that far."""
        terminal.close()
        if self.argv:
            os.execvp(self.argv[0], self.argv)
        if self.signum:
            signal.signal(self.signum, signal.SIG_DFL) if self.signum != signal.SIGKILL else None
            os.kill(os.getpid(), self.signum)
            signal.pause()
        return self.code


def set_name(name: str) -> None:
    """The name under which the system lists this process."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name[:15])


def _notice(agent: Agent, text: str) -> None:
    agent.show(agent.face.notice, agent.face.notice_rest, text)


def do_say(agent: Agent, text: str, step: Step) -> None:
    """Say something, as the agent."""
    for number, line in enumerate(str(text).split("\n")):
        if number == 0:
            agent.show(agent.face.said, agent.face.said_rest, line)
        else:
            agent.lines.append(agent.face.said_rest + line)
        if step.get("over"):
            agent.pause(float(step["over"]) / (str(text).count("\n") + 1))


def do_quote(agent: Agent, text: str, step: Step) -> None:
    """Show a tool's output: text that is quoted, not meant."""
    agent.show(agent.face.tool, agent.face.said_rest, str(step.get("tool", "Read(notes.txt)")))
    agent.show(agent.face.output, agent.face.output_rest, str(text))


def _busy(agent: Agent, seconds: float | None, until: Callable[[], object], mode: str, text: str) -> bool:
    """Show the spinner for a while; True when the condition ended it."""
    agent.mode, agent.text, agent.since, agent.interrupted = mode, text, time.monotonic(), False
    met = agent.pause(seconds, until=lambda: agent.interrupted or until(), poll=POLL_S)
    agent.mode = "idle"
    if agent.interrupted:
        raise Interrupted
    return met


def do_work(agent: Agent, seconds: float, step: Step) -> None:
    """Be busy, with a spinner."""
    if "tool" in step:
        agent.show(agent.face.tool, agent.face.said_rest, str(step["tool"]))
    _busy(agent, float(seconds), lambda: False, "working", str(step.get("text", "Working")))
    if agent.face.worked and step.get("summary", True):
        agent.show("", "", agent.face.worked.replace("{elapsed}", str(int(float(seconds)))))


def do_retry(agent: Agent, seconds: float, step: Step) -> None:
    """Wait and try again by itself, as a CLI does when the service is overloaded."""
    agent.retry_at, agent.attempt = time.monotonic() + agent.real(float(seconds)), int(step.get("attempt", 1))
    _busy(agent, float(seconds), lambda: False, "retrying", str(step.get("text", "API overloaded (529)")))


def do_sleep(agent: Agent, seconds: float, _: Step) -> None:
    """Do nothing, with the screen as it is."""
    agent.pause(float(seconds))


def _until_told(agent: Agent, text: str, accept: Callable[[str], bool]) -> None:
    """Show a notice and stay at the prompt; every message brings the notice again, until one is accepted."""
    _notice(agent, text)
    while not accept(agent.hear() or ""):
        agent.note("refused", agent.slots["message"])
        _notice(agent, text)


def do_limit(agent: Agent, text: Any, step: Step) -> None:
    """Run into a usage limit: refuse every message until the window is over, then go on with the next one.

    Slots of the banner: {reset} (an ISO instant), {reset_clock}, {reset_in}, {reset_epoch}.
    """
    template = str(text) if isinstance(text, str) else "You've hit your session limit · resets {reset}"
    window = float(step["for"]) if "for" in step else None
    again = int(step.get("again", 0))
    while True:
        opens = float("inf") if window is None else time.time() + agent.real(window)
        banner = effects.with_reset(template, opens)

        def over(_: str, opens: float = opens) -> bool:
            return time.time() >= opens

        _until_told(agent, banner, over)
        if not again:
            return
        again -= 1


def do_error(agent: Agent, text: Any, _: Step) -> None:
    """End the turn with an API error; the next message goes on."""
    _until_told(
        agent, text if isinstance(text, str) else "API Error: 500 Internal server error", lambda _: True
    )


def do_auth(agent: Agent, text: Any, _: Step) -> None:
    """Have the credentials refused, until /login."""
    default = "API Error: 401 · Please run /login"
    _until_told(agent, text if isinstance(text, str) else default, lambda heard: heard.startswith("/login"))


def do_context(agent: Agent, text: Any, _: Step) -> None:
    """Have a full context, until /compact or /clear."""
    default = "Context is full · run /compact or /clear to continue"
    accept = ("/compact", "/clear")
    _until_told(agent, text if isinstance(text, str) else default, lambda heard: heard.startswith(accept))


def do_fatal(agent: Agent, text: Any, _: Step) -> None:
    """Be wedged for good: every message brings the same text."""
    default = "This conversation cannot continue: request too large"
    _until_told(agent, text if isinstance(text, str) else default, lambda _: False)


def do_ask(agent: Agent, question: str, step: Step) -> None:
    """Open a dialog and wait for its answer, kept in {answer}; 0 is Escape."""
    agent.question = str(question).split("\n")
    agent.options = [str(o) for o in step.get("options", ["Yes", "No"])]
    agent.choice, agent.answer, agent.mode = int(step.get("default", 1)) - 1, -1, "asking"
    agent.pause(None, until=lambda: agent.answer >= 0 or agent.terminal.closed)
    agent.mode = "idle"
    agent.slots["answer"] = str(max(agent.answer, 0))
    agent.note("answer", agent.slots["answer"])


def do_waiting(agent: Agent, seconds: float, step: Step) -> None:
    """Print a WAITING-UNTIL marker as the last line and go on at that time."""
    instant = effects.iso(time.time() + agent.real(float(seconds)))
    agent.show(agent.face.said, agent.face.said_rest, f"{step.get('text', 'Waiting.')}")
    agent.lines.append(f"{agent.face.said_rest}WAITING-UNTIL: {instant}")
    agent.hear(float(seconds) if step.get("wake", True) else None)


def do_title(agent: Agent, text: str, _: Step) -> None:
    """Set the terminal's title."""
    agent.terminal.write(f"\x1b]2;{text}\x07")


def do_name(_: Agent, name: str, __: Step) -> None:
    """Change the process name that the system shows."""
    set_name(str(name))


def do_footer(agent: Agent, lines: Any, _: Step) -> None:
    """Replace the footer; true brings the face's own back."""
    agent.footer = None if lines is True else [str(line) for line in lines]


def do_clear(agent: Agent, _: Any, __: Step) -> None:
    """Clear what was said."""
    agent.lines.clear()


def do_flood(agent: Agent, lines: int, step: Step) -> None:
    """Print a great many lines at once."""
    text = str(step.get("text", "all work and no play makes a dull log "))
    for start in range(0, int(lines), 500):
        block = [f"{n} {text * 4}" for n in range(start, min(start + 500, int(lines)))]
        agent.terminal.write("\r\n".join(["", *block]))
        agent.lines += block[-60:]
    del agent.lines[:-1000]
    agent.terminal.forget()


def do_run(agent: Agent, command: str, step: Step) -> None:
    """Run a shell command and show its output; {status} and {output} hold the result."""
    agent.show(agent.face.tool, agent.face.said_rest, str(step.get("tool", f"Run({command})")))
    _command(
        agent, ["sh", "-c", str(command)], str(step.get("text", "Running")), quiet=bool(step.get("quiet"))
    )


def _command(agent: Agent, argv: list[str], text: str, *, quiet: bool = False) -> None:
    """Run a program with the screen alive; its result goes into the slots `status` and `output`."""
    job = effects.Job(argv)
    try:
        _busy(agent, None, job.finished, "working", text)
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
    effects.put(str(path), str(step.get("text", "")), append=False)
    agent.show(agent.face.tool, agent.face.said_rest, f"Write({path})")


def do_append(agent: Agent, path: str, step: Step) -> None:
    """Add to a file."""
    effects.put(str(path), str(step.get("text", "")), append=True)
    agent.show(agent.face.tool, agent.face.said_rest, f"Append({path})")


def do_remove(_: Agent, path: str, __: Step) -> None:
    """Delete a file."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(str(path))


def do_commit(agent: Agent, subject: str, step: Step) -> None:
    """Commit everything in the working tree."""
    agent.show(agent.face.tool, agent.face.said_rest, f"Commit({subject})")
    for argv in effects.commit_commands(str(subject), step):
        _command(agent, argv, "Committing", quiet=True)
        if agent.slots["status"] != "0":
            agent.show(agent.face.output, agent.face.output_rest, agent.slots["output"])


def do_usage(agent: Agent, tokens: int, step: Step) -> None:
    """Append a usage record to a transcript.

    It goes to AO_TRANSCRIPT, or where claude would put it when CLAUDE_CONFIG_DIR is set, else nowhere.
    """
    path = effects.transcript_path(str(step.get("transcript", "")), agent.conversation)
    if path:
        effects.put(
            path, effects.usage_line(agent.conversation, agent.slots["model"], int(tokens), step), append=True
        )


def do_spawn(agent: Agent, kinds: Any, _: Step) -> None:
    """Start children that may outlive it; true starts one of each kind.

    Kinds: plain, background, nohup, setsid, ignores_hup, own_group, handles_hup, daemon.
    """
    wanted = (
        list(children.KINDS)
        if kinds is True or kinds == "all"
        else [kinds]
        if isinstance(kinds, str)
        else kinds
    )
    for kind in wanted:
        children.spawn(str(kind), f"{agent.record}/children" if agent.record else "")


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
        met = _busy(agent, timeout, condition, "working", text)
    else:
        agent.mode = "idle"
        met = agent.pause(timeout, until=condition, poll=POLL_S)
    agent.slots["met"] = "yes" if met else "no"


def do_wait_file(agent: Agent, path: str, step: Step) -> None:
    """Wait until a file exists. {met} says yes or no."""
    pattern = re.compile(str(step.get("contains", "")), re.MULTILINE)
    _wait(agent, step, lambda: effects.file_has(str(path), pattern), f"Waiting for {path}")


def do_wait_commit(agent: Agent, pattern: str, step: Step) -> None:
    """Wait for a commit whose subject matches, kept in {commit}."""
    watch = effects.CommitWatch(
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
    met = effects.file_has(str(path), re.compile(str(step.get("contains", "")), re.MULTILINE))
    agent.perform(step.get("then", []) if met else step.get("else", []))


def do_once(agent: Agent, name: str, step: Step) -> None:
    """Do something only the first time, also across restarts of the agent."""
    if effects.first_time(agent.record, str(name), agent.slots):
        agent.perform(step.get("steps", []))
    else:
        agent.perform(step.get("else", []))


def do_set(agent: Agent, name: str, step: Step) -> None:
    """Remember a text under a name."""
    agent.slots[str(name)] = str(step.get("to", ""))
