"""Actions one sees: talking, working, and every kind of trouble an agent can be in.

Each is called with the agent, the value of its own key, and the whole step. Waiting is done through
`agent.pause`, `agent.busy` and `agent.hear`, which keep the screen and the keyboard alive.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fleet.scripted_agent import outside

if TYPE_CHECKING:  # the player imports the table of actions
    from fleet.scripted_agent.player import Agent
    from fleet.scripted_agent.script import Step


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


def do_work(agent: Agent, seconds: float, step: Step) -> None:
    """Be busy, with a spinner."""
    if "tool" in step:
        agent.show(agent.face.tool, agent.face.said_rest, str(step["tool"]))
    agent.busy(float(seconds), lambda: False, "working", str(step.get("text", "Working")))
    if agent.face.worked and step.get("summary", True):
        agent.show("", "", agent.face.worked.replace("{elapsed}", str(int(float(seconds)))))


def do_retry(agent: Agent, seconds: float, step: Step) -> None:
    """Wait and try again by itself, as a CLI does when the service is overloaded."""
    agent.retry_at, agent.attempt = time.monotonic() + agent.real(float(seconds)), int(step.get("attempt", 1))
    agent.busy(float(seconds), lambda: False, "retrying", str(step.get("text", "API overloaded (529)")))


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
        banner = outside.with_reset(template, opens)

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
    instant = outside.iso(time.time() + agent.real(float(seconds)))
    agent.show(agent.face.said, agent.face.said_rest, f"{step.get('text', 'Waiting.')}")
    agent.lines.append(f"{agent.face.said_rest}WAITING-UNTIL: {instant}")
    agent.hear(float(seconds) if step.get("wake", True) else None)


def do_title(agent: Agent, text: str, _: Step) -> None:
    """Set the terminal's title."""
    agent.terminal.write(f"\x1b]2;{text}\x07")


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
