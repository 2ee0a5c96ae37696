"""Write those documents that follow from the code: `python -m tools.docs`. With --check, say which are stale.

    docs/states.md  docs/events.md  docs/verbs.md  docs/verbs-and-states.md  docs/scripted.md
    docs/status.schema.json  docs/config.md  docs/agents.schema.json

A test compares them with what this would write, so none of them can be edited by hand or be forgotten.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fleet.core.outline import Cause
from fleet.core.words import Detail, EventType, State, WatchdogState
from fleet.scripted_agent.actions import ACTIONS
from fleet.verbs.arguments import parser_for
from fleet.verbs.main import GROUPS, LIBRARIES, verbs
from tools import config_docs, verbs_and_states
from tools.verbs_and_states import AROUND, AROUND_TABLE, EDGES, SITUATIONS, TABLE, Fate, Verb

ROOT = Path(__file__).resolve().parents[1]
WRITERS = ("core/**/*.py", "host/**/*.py", "supervisor/*.py", "verbs/*.py", "extras/notify/*.py")  # of events
# The first part of an event's name: the heading of its table.
FAMILIES = {
    "agent": "One agent or service; `agent` holds its name",
    "message": "Messages to an agent",
    "phase": "The phases of the loop",
    "sequence": "The whole sequence of phases",
    "task": "The task after the last phase",
    "gate": "The checks of a phase",
    "handoff": "What the repository and the inboxes brought",
    "config": "agents.toml",
    "watchdog": "The watchdog itself",
    "state": "The state directory",
    "server": "The tmux server",
    "effect": "What is about to be done",
    "action": "What was tried",
    "desired": "What the operator wants",
    "signal": "What the CLIs report of themselves",
    "tokens": "The token log",
    "notify": "Messages to people",
}
MADE = "<!-- made by `python -m tools.docs` from the code; a test compares them -->"


# --- states -----------------------------------------------------------------------------------------


def states() -> str:
    """docs/states.md: the words of `status`, and how they follow one another."""
    lines = [
        "# States",
        MADE,
        "",
        "`status` shows two words for every agent and service: a coarse one for programs, which gets new",
        "members only with a new major version, and a finer one for people.",
        "",
        "| state | meaning |",
        "|---|---|",
        *(f"| `{s}` | {s.means} |" for s in State),
        "",
        "```mermaid",
        "stateDiagram-v2",
        *(f"  {was} --> {now}: {why}" for (was, now), why in EDGES.items()),
        "```",
        "",
        "Only `reset`, `up` and `restart` lead out of FATAL: what needs a person stays so, seen or unseen.",
        "",
        "| detail | meaning |",
        "|---|---|",
        *(f"| `{d}` | {d.means} |" for d in Detail),
        "",
        "`agents.py explain NAME` tells why an agent is in its state, what decided it, which rules had",
        "nothing to say, and when it is looked at next.",
    ]
    return "\n".join(lines) + "\n"


# --- events -----------------------------------------------------------------------------------------


@cache
def written() -> frozenset[str]:
    """Event types that some line of the product names where it writes them."""
    named = {
        node.attr
        for room in WRITERS
        for path in (ROOT / "fleet").glob(room)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "EventType"
    }
    return frozenset(e.value for e in EventType if e.name in named)


def events() -> str:
    """docs/events.md: what may stand in events.jsonl."""
    lines = [
        "# Events",
        MADE,
        "",
        "`<log_dir>/events.jsonl` holds everything that was decided and done, one JSON object a line, only",
        "ever appended to; at 10 MB it becomes `events.jsonl.1` and so on. `agents.py events` reads it.",
        "",
        "| key | meaning |",
        "|---|---|",
        "| `v` | version of this format: 1 |",
        "| `seq` | number of the record; it only grows |",
        "| `at`, `ts` | when: ISO 8601 in UTC, and seconds since the epoch |",
        "| `type` | one of the words below |",
        "| `agent` | whom it is about; empty for the fleet |",
        "| `reason` | one sentence for a person |",
        "| `tick` | the look in which it was decided; 0 for a verb |",
        "| `facts` | figures and names that belong to the type |",
        "",
        "A reader must skip a line that a crash tore, and types and keys that it does not know.",
    ]
    for family, title in FAMILIES.items():
        rows = [kind for kind in EventType if kind.partition(".")[0] == family]
        lines += ["", f"## {title}", "", "| type | what happened |", "|---|---|"]
        lines += [f"| `{kind}` | {kind.means} |" for kind in rows]
    return "\n".join(lines) + "\n"


# --- verbs ------------------------------------------------------------------------------------------


def verb_reference() -> str:
    """docs/verbs.md: every verb with its words and options."""
    lines = [
        "# Verbs",
        MADE,
        "",
        "    agents.py [--config PATH] [--json] VERB ...",
        "",
        "`--config` and `--json` may stand before or after the verb. Without `--config`, `./agents.toml` is",
        "read, then the one beside `agents.py`. Exit codes: 0 fine, 1 not as desired, 2 usage or config, 130",
        "interrupted. Facts go to stdout, remarks to stderr. `agents.py VERB --help` prints what is here.",
    ]
    for group in (*GROUPS, "inner"):
        for name, offer in verbs().items():
            if offer.group == group:
                lines += _verb(name, importlib.import_module(f"fleet.verbs.{name}"))
    return "\n".join(lines) + "\n"


def _verb(name: str, module: Any) -> Iterator[str]:
    parser = parser_for(name, module)
    words = (module.__doc__ or "").strip().replace("\n  ", "\n    ")  # tables keep their columns
    yield from ("", f"## {name}", "", words, "")
    rows = list(_rows(parser, ""))
    said = [r[2] for r in rows if r[2]]
    options = " [options]" if any(r[0].startswith("`-") for r in rows) else ""
    yield f"    agents.py {' '.join([name, *said])}{options}"
    if rows:
        yield from ("", "| | |", "|---|---|")
        yield from (f"| {what} | {text} |" for what, text, _ in rows)
    if name in LIBRARIES and LIBRARIES[name][2]:
        yield from ("", "Needs libraries, and fetches them into a directory of its own.")


def _rows(parser: argparse.ArgumentParser, within: str) -> Iterator[tuple[str, str, str]]:
    """What, what for, and as it stands in a usage line."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list what it knows
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield "`" + "`, `".join(action.choices) + "`", "what to do", "|".join(action.choices)
            for word, inner in action.choices.items():
                yield from _rows(inner, f"{within}{word} ")
            continue
        if isinstance(action, argparse._HelpAction) or action.dest in {"config", "json"}:  # noqa: SLF001
            continue
        value = action.metavar or action.dest.upper()
        value = "|".join(map(str, action.choices)) if action.choices else str(value)
        text = " ".join((action.help or "").replace("%%", "%").split()).replace("|", "\\|")
        if action.option_strings:
            takes = "" if action.nargs == 0 else f" {value}"
            yield f"`{within}{', '.join(action.option_strings)}{takes}`".replace("|", "\\|"), text, ""
        else:
            several = {"*": f"[{value} ...]", "+": f"{value} ...", "?": f"[{value}]"}
            shown = "" if within else several.get(str(action.nargs), value)
            yield f"{within}{value}".replace("|", "\\|"), text, shown


# --- verbs and states -------------------------------------------------------------------------------


def verb_table() -> str:
    """docs/verbs-and-states.md: what each verb does to an agent in each state."""
    about = (verbs_and_states.__doc__ or "").partition("- ")[2]
    lines = [
        "# Verbs and states",
        MADE,
        "",
        "What each way to start and to stop does to an agent, whatever state it is in. `tests/tmux` walks",
        "every row below. The words are those of the code; *says* is the word of `--json`, *exit* the exit",
        "code of the verb when this is the only agent.",
        "",
        f"- {about.strip()}",
        "",
        "*Pane*: `later` means that the watchdog starts it at the end of its window. *Tallies*: how often it",
        "ended, and a FATAL verdict. *Conversation*: `goes on` with its process, `kept` on record for the",
        "next start.",
        "",
        "## An agent in a state",
    ]
    for situation, cells in TABLE.items():
        lines += [
            "",
            f"### {situation[0].upper()}{situation[1:]}",
            "",
            SITUATIONS[situation],
            "",
            *_fates(cells),
        ]
    lines += ["", "## Around an agent that runs"]
    for around, cells in AROUND_TABLE.items():
        lines += ["", f"### {around[0].upper()}{around[1:]}", "", AROUND[around], "", *_fates(cells)]
    return "\n".join(lines) + "\n"


def _fates(cells: Mapping[Verb, Fate]) -> Iterator[str]:
    yield "| verb | says | pane | wish | tallies | window | conversation | exit | |"
    yield "|---|---|---|---|---|---|---|--:|---|"
    for verb, f in cells.items():
        words = (f.told, f.pane, f.wish, f.tallies, f.window, f.conversation, f.code, f.text)
        yield f"| `{verb}` | {' | '.join(str(w) for w in words)} |"


# --- status -----------------------------------------------------------------------------------------


def status_schema() -> dict[str, Any]:
    """docs/status.schema.json: the document that `status --json` prints."""
    text, flag = {"type": "string"}, {"type": "boolean"}
    count, instant = {"type": "integer", "minimum": 0}, {"type": ["number", "null"]}
    pid, texts = {"type": ["integer", "null"]}, {"type": "array", "items": text}
    row = {
        "name": text,
        "kind": {"enum": ["loop", "persistent", "task", "service"]},
        "role": text,
        "backend": text,
        "model": text,
        "watch": {"enum": ["none", "heal", "heal+stall"]},
        "enabled": flag,
        "desired": {"enum": ["up", "down", ""]},
        "session": text,
        "state": {"enum": [str(s) for s in State]},
        "detail": {"enum": [str(d) for d in Detail]},
        "reason": text,
        "since": instant,
        "until": instant,
        "pid": pid,
        "restarts": count,
        "drift": texts,
        "phase": text,
        "rule": text,
        "account": text,
        "messages": count,
    }
    rows = {"type": "array", "items": _object(row)}
    project = dict.fromkeys(("config", "prefix", "socket", "log_dir"), text)
    dog = {
        "state": {"enum": [str(s) for s in WatchdogState]},
        "pid": pid,
        "last_tick": instant,
        "age": instant,
        "version": text,
        "degraded": text,
    }
    loop = {
        "index": {"type": ["integer", "null"]},
        "id": text,
        "total": count,
        "complete": flag,
        "held": text,
        "state": text,
    }
    declared = {
        "source": {"enum": ["file", "last_good"]},
        "cause": {"enum": [str(c) for c in Cause]},
        "problems": texts,
    }
    orphan = _object({"name": text, "session": text, "pid": {"type": "integer"}})
    top = {
        "version": text,
        "at": instant,
        "project": _object(project),
        "config": _object(declared),
        "watchdog": _object(dog),
        "loop": {"anyOf": [_object(loop), {"type": "null"}]},
        "agents": rows,
        "services": rows,
        "orphans": {"type": "array", "items": orphan},
        "problems": texts,
    }
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "agents.py status --json"}
    return head | _object(top)


def _object(shape: dict[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    required = [name for name in shape if name not in optional]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": shape}


# --- the scripted agent -----------------------------------------------------------------------------


def scripted_reference() -> str:
    """docs/scripted.md: tools/scripted.md, and every action of a script."""
    parts = [(ROOT / "tools" / "scripted.md").read_text(encoding="utf-8").rstrip(), "\n\n## Actions\n"]
    for name, action in ACTIONS.items():
        does = inspect.cleandoc(action.act.__doc__ or "")
        parts.append(f"\n### `{name}` = {action.value}\n\n{does}\n\n```toml\n{action.example}\n```\n")
        if action.options:
            parts.append("\n")
            parts += [f"- `{option}`: {text}\n" for option, text in action.options.items()]
    return "".join(parts)


# --- all of them ------------------------------------------------------------------------------------


def documents() -> dict[str, str]:
    """Path below docs/ to content."""
    return {
        "states.md": states(),
        "events.md": events(),
        "verbs.md": verb_reference(),
        "verbs-and-states.md": verb_table(),
        "status.schema.json": json.dumps(status_schema(), indent=1) + "\n",
        "scripted.md": scripted_reference() + "\n",
        "config.md": config_docs.reference(),
        "agents.schema.json": json.dumps(config_docs.json_schema(), indent=1) + "\n",
    }


def stale() -> list[str]:
    """Those that are not what the code says."""
    found = []
    for name, text in documents().items():
        path = ROOT / "docs" / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            found.append(f"docs/{name}")
    return found


def main() -> int:
    """Write them, or with --check only compare."""
    if sys.argv[1:] == ["--check"]:
        for name in (old := stale()):
            print(f"{name} is not what the code says: run `python -m tools.docs`")
        return 1 if old else 0
    for name, text in documents().items():
        (ROOT / "docs" / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
