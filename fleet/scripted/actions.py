"""What a scripted agent can do: one table, from which the checks and the documentation follow too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fleet.scripted import acts

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
        acts.do_say,
        "text",
        '{ say = "Reading the plan." }',
        {"over": "let it appear over so many seconds"},
    ),
    "quote": Action(
        acts.do_quote,
        "text",
        '{ quote = "usage limit reached", tool = "Bash(grep limit log)" }',
        {"tool": "the call above it"},
    ),
    "work": Action(
        acts.do_work,
        "seconds",
        '{ work = 2.5, tool = "Bash(make test)" }',
        {
            "text": "what the spinner says",
            "tool": "a tool call to show above it",
            "summary": "false: leave no summary line",
        },
    ),
    "retry": Action(
        acts.do_retry,
        "seconds",
        "{ retry = 20, attempt = 3 }",
        {"text": "the reason shown", "attempt": "which attempt it is"},
    ),
    "sleep": Action(acts.do_sleep, "seconds", "{ sleep = 1 }"),
    "limit": Action(
        acts.do_limit,
        "text, or true",
        '{ limit = "Usage limit reached · resets {reset}", for = 5 }',
        {"for": "seconds until it resets; without it, never", "again": "arm it again so many times"},
    ),
    "error": Action(
        acts.do_error,
        "text, or true",
        '{ error = "API Error: 529 Overloaded" }',
    ),
    "auth": Action(acts.do_auth, "text, or true", "{ auth = true }"),
    "context": Action(
        acts.do_context,
        "text, or true",
        "{ context = true }",
    ),
    "fatal": Action(
        acts.do_fatal,
        "text, or true",
        "{ fatal = true }",
    ),
    "ask": Action(
        acts.do_ask,
        "question",
        '{ ask = "Do you trust this folder?", options = ["Yes", "No, exit"], default = 2 }',
        {"options": "the choices", "default": "which one Enter takes (1 is the first)"},
    ),
    "waiting": Action(
        acts.do_waiting,
        "seconds",
        "{ waiting = 30 }",
        {"text": "what to say before it", "wake": "false: go on only when a message comes"},
    ),
    "title": Action(acts.do_title, "text", '{ title = "building" }'),
    "name": Action(acts.do_name, "text", '{ name = "claude" }'),
    "footer": Action(
        acts.do_footer,
        "lines, or true",
        '{ footer = ["  no shortcuts"] }',
    ),
    "clear": Action(acts.do_clear, "true", "{ clear = true }"),
    "flood": Action(
        acts.do_flood,
        "lines",
        "{ flood = 100000 }",
        {"text": "what they say"},
    ),
    "run": Action(
        acts.do_run,
        "command",
        '{ run = "make test" }',
        {"tool": "the call shown", "text": "what the spinner says", "quiet": "true: do not show it"},
    ),
    "write": Action(
        acts.do_write,
        "path",
        "{ write = \"STATUS-{phase}.md\", text = '''## DONE''' }",
        {"text": "its content"},
    ),
    "append": Action(
        acts.do_append,
        "path",
        '{ append = "INBOX.md", text = "please look" }',
        {"text": "what to add"},
    ),
    "remove": Action(acts.do_remove, "path", '{ remove = "INBOX.md" }'),
    "commit": Action(
        acts.do_commit,
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
        acts.do_usage,
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
        acts.do_spawn,
        "kind, list or true",
        '{ spawn = ["setsid", "nohup"] }',
    ),
    "wait_message": Action(
        acts.do_wait_message,
        "pattern, or true",
        '{ wait_message = "(?i)review", timeout = 60 }',
        {"timeout": _TIMEOUT["timeout"]},
    ),
    "wait_file": Action(
        acts.do_wait_file,
        "path",
        '{ wait_file = "REVIEW.md", contains = "PASS" }',
        {"contains": "and has a match for this", **_TIMEOUT},
    ),
    "wait_commit": Action(
        acts.do_wait_commit,
        "pattern",
        "{ wait_commit = '^review', timeout = 60 }",
        {
            "repo": "another repository than the one here",
            "old": "true: one that is there already counts",
            **_TIMEOUT,
        },
    ),
    "ignore": Action(acts.do_ignore, "true or false", "{ ignore = true }"),
    "hang": Action(acts.do_hang, "seconds, or true", "{ hang = true }"),
    "signals": Action(acts.do_signals, "names", '{ signals = ["HUP", "TERM"] }'),
    "exit": Action(
        acts.do_exit,
        "code, or true",
        "{ exit = 3 }",
        {"last": "a shell command that prints last words and exits"},
    ),
    "die": Action(acts.do_die, "signal", '{ die = "SEGV" }'),
    "shell": Action(
        acts.do_shell,
        "true, or a shell",
        "{ shell = true }",
    ),
    "become": Action(acts.do_become, "command", '{ become = "top" }'),
    "repeat": Action(
        acts.do_repeat,
        "times, or true",
        "{ repeat = 3, steps = [{ work = 1 }] }",
        {"steps": "what to repeat"},
    ),
    "if": Action(
        acts.do_if,
        "text with slots",
        '{ if = "{answer}", has = "2", then = [{ exit = 1 }] }',
        {"has": "a pattern to find", **_STEPS},
    ),
    "if_file": Action(
        acts.do_if_file,
        "path",
        '{ if_file = "REVIEW.md", contains = "FAIL", then = [{ work = 1 }] }',
        {"contains": "a pattern to find", **_STEPS},
    ),
    "once": Action(
        acts.do_once,
        "name",
        '{ once = "limit-{phase}", steps = [{ limit = true, for = 3 }] }',
        {"steps": "what to do the first time", "else": "what to do every other time"},
    ),
    "set": Action(
        acts.do_set,
        "slot",
        '{ set = "verdict", to = "PASS" }',
        {"to": "the text"},
    ),
}

OPTIONS: dict[str, frozenset[str]] = {name: frozenset(a.options) for name, a in ACTIONS.items()}
