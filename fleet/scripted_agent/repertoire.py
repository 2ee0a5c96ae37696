"""What a scripted agent can do: one table, from which checks and documents follow."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fleet.scripted_agent import doing, showing

Act = Callable[[Any, Any, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the table."""

    act: Act  # its docstring is the action's description
    value: str  # what stands behind the action's own key
    example: str
    options: dict[str, str] = field(default_factory=dict)


_STEPS = {"then": "steps to do when it is so", "else": "steps to do when it is not"}
_TIMEOUT = {"timeout": "give up after so many seconds", "busy": "show the spinner meanwhile"}

ACTIONS: dict[str, Action] = {
    "say": Action(
        showing.do_say,
        "text",
        '{ say = "Reading the plan." }',
        {"over": "let it appear over so many seconds"},
    ),
    "quote": Action(
        showing.do_quote,
        "text",
        '{ quote = "usage limit reached", tool = "Bash(grep limit log)" }',
        {"tool": "the call above it"},
    ),
    "work": Action(
        showing.do_work,
        "seconds",
        '{ work = 2.5, tool = "Bash(make test)" }',
        {
            "text": "what the spinner says",
            "tool": "a tool call to show above it",
            "summary": "false: leave no summary line",
        },
    ),
    "retry": Action(
        showing.do_retry,
        "seconds",
        "{ retry = 20, attempt = 3 }",
        {"text": "the reason shown", "attempt": "which attempt it is"},
    ),
    "sleep": Action(showing.do_sleep, "seconds", "{ sleep = 1 }"),
    "limit": Action(
        showing.do_limit,
        "text, or true",
        '{ limit = "Usage limit reached · resets {reset}", for = 5 }',
        {"for": "seconds until it resets; without it, never", "again": "arm it again so many times"},
    ),
    "error": Action(
        showing.do_error,
        "text, or true",
        '{ error = "API Error: 529 Overloaded" }',
    ),
    "auth": Action(showing.do_auth, "text, or true", "{ auth = true }"),
    "context": Action(
        showing.do_context,
        "text, or true",
        "{ context = true }",
    ),
    "fatal": Action(
        showing.do_fatal,
        "text, or true",
        "{ fatal = true }",
    ),
    "ask": Action(
        showing.do_ask,
        "question",
        '{ ask = "Do you trust this folder?", options = ["Yes", "No, exit"], default = 2 }',
        {"options": "the choices", "default": "which one Enter takes (1 is the first)"},
    ),
    "waiting": Action(
        showing.do_waiting,
        "seconds",
        "{ waiting = 30 }",
        {"text": "what to say before it", "wake": "false: go on only when a message comes"},
    ),
    "title": Action(showing.do_title, "text", '{ title = "building" }'),
    "name": Action(doing.do_name, "text", '{ name = "my-cli" }'),
    "footer": Action(
        showing.do_footer,
        "lines, or true",
        '{ footer = ["  no shortcuts"] }',
    ),
    "clear": Action(showing.do_clear, "true", "{ clear = true }"),
    "flood": Action(
        showing.do_flood,
        "lines",
        "{ flood = 100000 }",
        {"text": "what they say"},
    ),
    "run": Action(
        doing.do_run,
        "command",
        '{ run = "make test" }',
        {"tool": "the call shown", "text": "what the spinner says", "quiet": "true: do not show it"},
    ),
    "write": Action(
        doing.do_write,
        "path",
        "{ write = \"STATUS-{phase}.md\", text = '''## DONE''' }",
        {"text": "its content"},
    ),
    "append": Action(
        doing.do_append,
        "path",
        '{ append = "INBOX.md", text = "please look" }',
        {"text": "what to add"},
    ),
    "remove": Action(doing.do_remove, "path", '{ remove = "INBOX.md" }'),
    "commit": Action(
        doing.do_commit,
        "subject",
        '{ commit = "claim({phase}): parser", push = true }',
        {
            "push": "push afterwards",
            "pull": "pull with rebase first",
            "empty": "allow an empty commit",
            "files": "only these",
        },
    ),
    "usage": Action(
        doing.do_usage,
        "input tokens",
        "{ usage = 1200, output = 300, cache_read = 9000 }",
        {
            "output": "output tokens",
            "cache_read": "tokens read from the cache",
            "cache_write": "tokens written to it",
            "transcript": "another file",
            "repeat": "write the same record so many times, as CLIs do",
        },
    ),
    "spawn": Action(
        doing.do_spawn,
        "kind, list or true",
        '{ spawn = ["setsid", "nohup"] }',
    ),
    "wait_message": Action(
        doing.do_wait_message,
        "pattern, or true",
        '{ wait_message = "(?i)review", timeout = 60 }',
        {"timeout": _TIMEOUT["timeout"]},
    ),
    "wait_file": Action(
        doing.do_wait_file,
        "path",
        '{ wait_file = "REVIEW.md", contains = "PASS" }',
        {"contains": "and has a match for this", **_TIMEOUT},
    ),
    "wait_commit": Action(
        doing.do_wait_commit,
        "pattern",
        "{ wait_commit = '^review', timeout = 60 }",
        {
            "repo": "another repository than the one here",
            "old": "true: one that is there already counts",
            **_TIMEOUT,
        },
    ),
    "ignore": Action(doing.do_ignore, "true or false", "{ ignore = true }"),
    "hang": Action(doing.do_hang, "seconds, or true", "{ hang = true }"),
    "signals": Action(doing.do_signals, "names", '{ signals = ["HUP", "TERM"] }'),
    "exit": Action(
        doing.do_exit,
        "code, or true",
        "{ exit = 3 }",
        {"last": "a shell command that prints last words and exits"},
    ),
    "die": Action(doing.do_die, "signal", '{ die = "SEGV" }'),
    "shell": Action(
        doing.do_shell,
        "true, or a shell",
        "{ shell = true }",
    ),
    "become": Action(doing.do_become, "command", '{ become = "top" }'),
    "repeat": Action(
        doing.do_repeat,
        "times, or true",
        "{ repeat = 3, steps = [{ work = 1 }] }",
        {"steps": "what to repeat"},
    ),
    "if": Action(
        doing.do_if,
        "text with slots",
        '{ if = "{answer}", has = "2", then = [{ exit = 1 }] }',
        {"has": "a pattern to find", **_STEPS},
    ),
    "if_file": Action(
        doing.do_if_file,
        "path",
        '{ if_file = "REVIEW.md", contains = "FAIL", then = [{ work = 1 }] }',
        {"contains": "a pattern to find", **_STEPS},
    ),
    "once": Action(
        doing.do_once,
        "name",
        '{ once = "limit-{phase}", steps = [{ limit = true, for = 3 }] }',
        {"steps": "what to do the first time", "else": "what to do every other time"},
    ),
    "set": Action(
        doing.do_set,
        "slot",
        '{ set = "verdict", to = "PASS" }',
        {"to": "the text"},
    ),
}

OPTIONS: dict[str, frozenset[str]] = {name: frozenset(a.options) for name, a in ACTIONS.items()}


# --------------------------------------------------------------------------------------------------
# docs/scripted.md, made from the table of actions, so that it cannot say anything that is not so.


HEAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted.md")


def reference() -> str:
    """The whole page."""
    with open(HEAD, encoding="utf-8") as file:
        parts = [file.read().rstrip(), "\n\n## Actions\n"]
    for name, action in ACTIONS.items():
        does = inspect.cleandoc(action.act.__doc__ or "")
        parts.append(f"\n### `{name}` = {action.value}\n\n{does}\n\n```toml\n{action.example}\n```\n")
        if action.options:
            parts.append("\n")
            parts += [f"- `{option}`: {text}\n" for option, text in action.options.items()]
    return "".join(parts)
