"""What a step of a script may ask for: one function for each action, with its row of the reference.

Each is called with the agent, the value of its own key, and the whole step. Waiting is done through
`agent.pause`, `agent.busy` and `agent.hear`, which keep the screen and the keyboard alive.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleet.backends.scripted import records
from fleet.scripted_agent import outside

if TYPE_CHECKING:  # the player imports the table of actions
    from fleet.scripted_agent.player import Agent

POLL_S = 0.05
_STEPS = {"then": "steps to do when it is so", "else": "steps to do when it is not"}
_TIMEOUT = {"timeout": "give up after so many seconds", "busy": "show the spinner meanwhile"}

Step = dict[str, Any]
Act = Callable[[Any, Any, Step], None]


class Interrupted(Exception):
    """Escape or Ctrl-C was pressed while the agent worked."""


class Ended(Exception):
    """The program is over: by a code, by a signal, or by becoming another program."""

    def __init__(self, code: int = 0, signum: int = 0, argv: list[str] | None = None) -> None:
        super().__init__(code, signum, argv)
        self.code = code
        self.signum = signum
        self.argv = argv


@dataclass(frozen=True, slots=True)
class Action:
    """One action. The docstring of `act` is its description."""

    act: Act
    value: str  # what stands behind the action's own key
    example: str
    options: Mapping[str, str]


ACTIONS: dict[str, Action] = {}  # in the order of the reference


def action(value: str, example: str, options: Mapping[str, str] | None = None) -> Callable[[Act], Act]:
    """Make the function `do_NAME` the action NAME."""

    def added(act: Act) -> Act:
        ACTIONS[act.__name__.removeprefix("do_")] = Action(act, value, example, options or {})
        return act

    return added


def _call(agent: Agent, text: str) -> None:
    """Show a tool call."""
    agent.show(agent.face.tool, agent.face.said_rest, text)


def _output(agent: Agent, text: str) -> None:
    """Show what a tool printed."""
    agent.show(agent.face.output, agent.face.output_rest, text)


# --- on the screen: talking, working, and every kind of trouble an agent can be in -------------------------


@action("text", '{ say = "Reading the plan." }', {"over": "let it appear over so many seconds"})
def do_say(agent: Agent, text: str, step: Step) -> None:
    """Say something, as the agent."""
    for number, line in enumerate(str(text).split("\n")):
        if number == 0:
            agent.show(agent.face.said, agent.face.said_rest, line)
        else:
            agent.lines.append(agent.face.said_rest + line)
        if step.get("over"):
            agent.pause(float(step["over"]) / (str(text).count("\n") + 1))


@action(
    "text", '{ quote = "usage limit reached", tool = "Bash(grep limit log)" }', {"tool": "the call above it"}
)
def do_quote(agent: Agent, text: str, step: Step) -> None:
    """Show a tool's output: text that is quoted, not meant."""
    _call(agent, str(step.get("tool", "Read(notes.txt)")))
    _output(agent, str(text))


@action(
    "seconds",
    '{ work = 2.5, tool = "Bash(make test)" }',
    {
        "text": "what the spinner says",
        "tool": "a tool call to show above it",
        "summary": "false: leave no summary line",
    },
)
def do_work(agent: Agent, seconds: float, step: Step) -> None:
    """Be busy, with a spinner."""
    if "tool" in step:
        _call(agent, str(step["tool"]))
    agent.busy(float(seconds), lambda: False, "working", str(step.get("text", "Working")))
    if agent.face.worked and step.get("summary", True):
        agent.show("", "", agent.face.worked.replace("{elapsed}", str(int(float(seconds)))))


@action(
    "seconds", "{ retry = 20, attempt = 3 }", {"text": "the reason shown", "attempt": "which attempt it is"}
)
def do_retry(agent: Agent, seconds: float, step: Step) -> None:
    """Wait and try again by itself, as a CLI does when the service is overloaded."""
    agent.retry_at, agent.attempt = time.monotonic() + agent.real(float(seconds)), int(step.get("attempt", 1))
    agent.busy(float(seconds), lambda: False, "retrying", str(step.get("text", "API overloaded (529)")))


@action("seconds", "{ sleep = 1 }")
def do_sleep(agent: Agent, seconds: float, _: Step) -> None:
    """Do nothing, with the screen as it is."""
    agent.pause(float(seconds))


def _until_accepted(agent: Agent, text: Any, default: str, accept: Callable[[str], bool]) -> None:
    """Show a notice and stay at the prompt; every message brings the notice again, until one is accepted."""
    said = text if isinstance(text, str) else default
    agent.show(agent.face.notice, agent.face.notice_rest, said)
    while not accept(agent.hear() or ""):
        agent.note("refused", agent.slots["message"])
        agent.show(agent.face.notice, agent.face.notice_rest, said)


@action(
    "text, or true",
    '{ limit = "Usage limit reached · resets {reset}", for = 5 }',
    {"for": "seconds until it resets; without it, never", "again": "arm it again so many times"},
)
def do_limit(agent: Agent, text: Any, step: Step) -> None:
    """Run into a usage limit: refuse every message until the window is over, then go on with the next one.

    Slots of the banner: {reset} (an ISO instant), {reset_clock}, {reset_in}, {reset_epoch}.
    """
    template = str(text) if isinstance(text, str) else "You've hit your session limit · resets {reset}"
    window = float(step["for"]) if "for" in step else None
    again = int(step.get("again", 0))
    while True:
        opens = float("inf") if window is None else time.time() + agent.real(window)
        banner = outside.with_reset(template, opens)

        def over(_: str, opens: float = opens) -> bool:
            return time.time() >= opens

        _until_accepted(agent, banner, "", over)
        if not again:
            return
        again -= 1


@action("text, or true", '{ error = "API Error: 529 Overloaded" }')
def do_error(agent: Agent, text: Any, _: Step) -> None:
    """End the turn with an API error; the next message goes on."""
    _until_accepted(agent, text, "API Error: 500 Internal server error", lambda _: True)


@action("text, or true", "{ auth = true }")
def do_auth(agent: Agent, text: Any, _: Step) -> None:
    """Have the credentials refused, until /login."""
    refusal = "API Error: 401 · Please run /login"
    _until_accepted(agent, text, refusal, lambda heard: heard.startswith("/login"))


@action("text, or true", "{ context = true }")
def do_context(agent: Agent, text: Any, _: Step) -> None:
    """Have a full context, until /compact or /clear."""
    full = "Context is full · run /compact or /clear to continue"
    _until_accepted(agent, text, full, lambda heard: heard.startswith(("/compact", "/clear")))


@action("text, or true", "{ fatal = true }")
def do_fatal(agent: Agent, text: Any, _: Step) -> None:
    """Be wedged for good: every message brings the same text."""
    _until_accepted(agent, text, "This conversation cannot continue: request too large", lambda _: False)


@action(
    "question",
    '{ ask = "Do you trust this folder?", options = ["Yes", "No, exit"], default = 2 }',
    {"options": "the choices", "default": "which one Enter takes (1 is the first)"},
)
def do_ask(agent: Agent, question: str, step: Step) -> None:
    """Open a dialog and wait for its answer, kept in {answer}; 0 is Escape."""
    agent.question = str(question).split("\n")
    agent.options = [str(o) for o in step.get("options", ["Yes", "No"])]
    agent.choice, agent.answer, agent.mode = int(step.get("default", 1)) - 1, -1, "asking"
    agent.pause(None, until=lambda: agent.answer >= 0 or agent.terminal.closed)
    agent.mode = "idle"
    agent.slots["answer"] = str(max(agent.answer, 0))
    agent.note("answer", agent.slots["answer"])


@action(
    "seconds",
    "{ waiting = 30 }",
    {"text": "what to say before it", "wake": "false: go on only when a message comes"},
)
def do_waiting(agent: Agent, seconds: float, step: Step) -> None:
    """Print a WAITING-UNTIL marker as the last line and go on at that time."""
    instant = outside.iso(time.time() + agent.real(float(seconds)))
    agent.show(agent.face.said, agent.face.said_rest, f"{step.get('text', 'Waiting.')}")
    agent.lines.append(f"{agent.face.said_rest}WAITING-UNTIL: {instant}")
    agent.hear(float(seconds) if step.get("wake", True) else None)


@action("text", '{ title = "building" }')
def do_title(agent: Agent, text: str, _: Step) -> None:
    """Set the terminal's title."""
    agent.terminal.write(f"\x1b]2;{text}\x07")


@action("text", '{ name = "my-cli" }')
def do_name(_: Agent, name: str, __: Step) -> None:
    """Change the process name that the system shows."""
    outside.set_name(str(name))


@action("lines, or true", '{ footer = ["  no shortcuts"] }')
def do_footer(agent: Agent, lines: Any, _: Step) -> None:
    """Replace the footer; true brings the face's own back."""
    agent.footer = None if lines is True else [str(line) for line in lines]


@action("true", "{ clear = true }")
def do_clear(agent: Agent, _: Any, __: Step) -> None:
    """Clear what was said."""
    agent.lines.clear()


@action("lines", "{ flood = 100000 }", {"text": "what they say"})
def do_flood(agent: Agent, lines: int, step: Step) -> None:
    """Print a great many lines at once."""
    text = str(step.get("text", "all work and no play makes a dull log "))
    for start in range(0, int(lines), 500):
        block = [f"{n} {text * 4}" for n in range(start, min(start + 500, int(lines)))]
        agent.terminal.write("\r\n".join(["", *block]))
        agent.lines += block[-60:]
    del agent.lines[:-1000]
    agent.terminal.forget()


# --- with consequences: commands, files, commits, children -------------------------------------------------


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
        _output(agent, "\n".join(shown) if shown != [""] else "(no output)")


@action(
    "command",
    '{ run = "make test" }',
    {"tool": "the call shown", "text": "what the spinner says", "quiet": "true: do not show it"},
)
def do_run(agent: Agent, command: str, step: Step) -> None:
    """Run a shell command and show its output; {status} and {output} hold the result."""
    _call(agent, str(step.get("tool", f"Run({command})")))
    _command(
        agent, ["sh", "-c", str(command)], str(step.get("text", "Running")), quiet=bool(step.get("quiet"))
    )


@action("path", "{ write = \"STATUS-{phase}.md\", text = '''## DONE''' }", {"text": "its content"})
def do_write(agent: Agent, path: str, step: Step) -> None:
    """Write a file, whole and at once."""
    outside.put(str(path), str(step.get("text", "")), append=False)
    _call(agent, f"Write({path})")


@action("path", '{ append = "INBOX.md", text = "please look" }', {"text": "what to add"})
def do_append(agent: Agent, path: str, step: Step) -> None:
    """Add to a file."""
    outside.put(str(path), str(step.get("text", "")), append=True)
    _call(agent, f"Append({path})")


@action("path", '{ remove = "INBOX.md" }')
def do_remove(_: Agent, path: str, __: Step) -> None:
    """Delete a file."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(str(path))


@action(
    "subject",
    '{ commit = "claim({phase}): parser", push = true }',
    {
        "push": "push afterwards",
        "pull": "pull with rebase first",
        "empty": "allow an empty commit",
        "files": "only these",
    },
)
def do_commit(agent: Agent, subject: str, step: Step) -> None:
    """Commit everything in the working tree."""
    _call(agent, f"Commit({subject})")
    for argv in outside.commit_commands(str(subject), step):
        _command(agent, argv, "Committing", quiet=True)
        if agent.slots["status"] != "0":
            _output(agent, agent.slots["output"])


@action(
    "input tokens",
    "{ usage = 1200, output = 300, cache_read = 9000 }",
    {
        "output": "output tokens",
        "cache_read": "tokens read from the cache",
        "cache_write": "tokens written to it",
        "transcript": "another file",
        "repeat": "write the same record so many times, as CLIs do",
    },
)
def do_usage(agent: Agent, tokens: int, step: Step) -> None:
    """Append a usage record to a transcript.

    It goes to AO_TRANSCRIPT, or where the reader that the profile names looks for it, else nowhere.
    """
    path = records.transcript_path(str(step.get("transcript", "")), agent.conversation)
    if path:
        outside.put(
            path, records.usage_line(agent.conversation, agent.slots["model"], int(tokens), step), append=True
        )


@action("kind, list or true", '{ spawn = ["setsid", "nohup"] }')
def do_spawn(agent: Agent, kinds: Any, _: Step) -> None:
    """Start children that may outlive it; true starts one of each kind.

    Kinds: plain, background, nohup, setsid, ignores_hup, own_group, handles_hup, daemon.
    """
    wanted = [kinds] if isinstance(kinds, str) else kinds
    if kinds is True or kinds == "all":
        wanted = list(outside.KINDS)
    for kind in wanted:
        outside.spawn(str(kind), f"{agent.record}/children" if agent.record else "")


# --- waiting for others, falling silent, ending ------------------------------------------------------------


@action("pattern, or true", '{ wait_message = "(?i)review", timeout = 60 }', {"timeout": _TIMEOUT["timeout"]})
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


@action(
    "path",
    '{ wait_file = "REVIEW.md", contains = "PASS" }',
    {"contains": "and has a match for this", **_TIMEOUT},
)
def do_wait_file(agent: Agent, path: str, step: Step) -> None:
    """Wait until a file exists. {met} says yes or no."""
    pattern = re.compile(str(step.get("contains", "")), re.MULTILINE)
    _wait(agent, step, lambda: outside.file_has(str(path), pattern), f"Waiting for {path}")


@action(
    "pattern",
    "{ wait_commit = '^review', timeout = 60 }",
    {
        "repo": "another repository than the one here",
        "old": "true: one that is there already counts",
        **_TIMEOUT,
    },
)
def do_wait_commit(agent: Agent, pattern: str, step: Step) -> None:
    """Wait for a commit whose subject matches, kept in {commit}."""
    watch = outside.CommitWatch(
        re.compile(str(pattern)), str(step.get("repo", ".")), old=bool(step.get("old"))
    )
    _wait(agent, step, watch.seen, "Waiting for a commit")
    agent.slots["commit"] = watch.subject


@action("true or false", "{ ignore = true }")
def do_ignore(agent: Agent, value: bool, _: Step) -> None:  # noqa: FBT001 - the value of a key in a script
    """Ignore what is typed (it is still recorded)."""
    agent.deaf = bool(value)


@action("seconds, or true", "{ hang = true }")
def do_hang(agent: Agent, seconds: Any, _: Step) -> None:
    """Hang: read nothing, draw nothing."""
    agent.paint()
    agent.hung = True
    time.sleep(1e9 if seconds is True else agent.real(float(seconds)))
    agent.hung = False


@action("names", '{ signals = ["HUP", "TERM"] }')
def do_signals(_: Agent, names: list[str], __: Step) -> None:
    """Ignore signals from now on."""
    for name in names:
        signal.signal(signal.Signals[f"SIG{str(name).removeprefix('SIG')}"], signal.SIG_IGN)


@action("code, or true", "{ exit = 3 }", {"last": "a shell command that prints last words and exits"})
def do_exit(_: Agent, code: Any, step: Step) -> None:
    """Leave with that exit code."""
    raise Ended(0 if code is True else int(code), argv=["sh", "-c", step["last"]] if "last" in step else None)


@action("signal", '{ die = "SEGV" }')
def do_die(_: Agent, name: str, __: Step) -> None:
    """Die of a signal."""
    raise Ended(signum=signal.Signals[f"SIG{str(name).removeprefix('SIG')}"])


@action("true, or a shell", "{ shell = true }")
def do_shell(_: Agent, value: Any, __: Step) -> None:
    """Leave a bare shell behind, as a crashed wrapper does."""
    raise Ended(argv=[value if isinstance(value, str) else "sh"])


@action("command", '{ become = "top" }')
def do_become(_: Agent, command: Any, __: Step) -> None:
    """Become another program, in the same process."""
    raise Ended(
        argv=[str(word) for word in command] if isinstance(command, list) else ["sh", "-c", f"exec {command}"]
    )


# --- choosing and repeating --------------------------------------------------------------------------------


@action("times, or true", "{ repeat = 3, steps = [{ work = 1 }] }", {"steps": "what to repeat"})
def do_repeat(agent: Agent, times: Any, step: Step) -> None:
    """Repeat steps; {n} counts from 1."""
    count = 0
    while times is True or count < int(times):
        count += 1
        agent.slots["n"] = str(count)
        agent.perform(step.get("steps", []))


@action(
    "text with slots",
    '{ if = "{answer}", has = "2", then = [{ exit = 1 }] }',
    {"has": "a pattern to find", **_STEPS},
)
def do_if(agent: Agent, subject: str, step: Step) -> None:
    """Choose by what a text says."""
    met = re.search(str(step.get("has", ".")), str(subject)) is not None
    agent.perform(step.get("then", []) if met else step.get("else", []))


@action(
    "path",
    '{ if_file = "REVIEW.md", contains = "FAIL", then = [{ work = 1 }] }',
    {"contains": "a pattern to find", **_STEPS},
)
def do_if_file(agent: Agent, path: str, step: Step) -> None:
    """Choose by what a file says."""
    met = outside.file_has(str(path), re.compile(str(step.get("contains", "")), re.MULTILINE))
    agent.perform(step.get("then", []) if met else step.get("else", []))


@action(
    "name",
    '{ once = "limit-{phase}", steps = [{ limit = true, for = 3 }] }',
    {"steps": "what to do the first time", "else": "what to do every other time"},
)
def do_once(agent: Agent, name: str, step: Step) -> None:
    """Do something only the first time, also across restarts of the agent."""
    if outside.first_time(agent.record, str(name)):
        agent.perform(step.get("steps", []))
    else:
        agent.perform(step.get("else", []))


@action("slot", '{ set = "verdict", to = "PASS" }', {"to": "the text"})
def do_set(agent: Agent, name: str, step: Step) -> None:
    """Remember a text under a name."""
    agent.slots[str(name)] = str(step.get("to", ""))
