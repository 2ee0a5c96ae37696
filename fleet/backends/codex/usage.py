"""Codex: rollout files, lines of {timestamp, type, payload}, with a running total of tokens.

The total only grows; the `last` figure beside it is repeated whenever rate limits change, so it is
never added up. What counts is the step from one total to the next, on the day and model of that moment.
Cached input is inside input here, and reasoning inside output.

A fork begins with a copy of its parent's lines, under new times. Totals that stand in the parent too, in the
same order and from before the fork, are the parent's. What compacting took may be missing from the totals:
then only the record of that one response tells.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet import reading
from fleet.backends.ledger import UNKNOWN, Counts, Four, Ledger, number
from fleet.backends.readers import (
    USAGE,
    Counter,
    Directories,
    Entry,
    LineFormat,
    Role,
    UsageReader,
    Wanted,
    clock,
    content_text,
    day_of,
    object_of,
    told_call,
)
from fleet.backends.readers import text_of as _text
from fleet.reading import Ident
from fleet.text import as_object

KIND = "codex"
# What a line must hold to say something about tokens or about who used them.
_TELLING = (b'"token_count"', b'"turn_context"', b'"token_usage_record"', b'"compacted"')
_SPOKEN = b'"response_item"'  # the type of most lines, and of all long ones: what was said and done
_HEAD = 200  # bytes of a line that hold its type
TREES = ("sessions", "archived_sessions")  # where a home keeps its rollouts
_NOTHING = (0, 0, 0, 0)


def homes(env: Mapping[str, str]) -> tuple[str, ...]:
    """Where this CLI keeps its files, for a process with that environment."""
    home = env.get("HOME") or os.path.expanduser("~")
    return (env.get("CODEX_HOME") or os.path.join(home, ".codex"),)


def _payload(line: dict[str, Any]) -> dict[str, Any]:
    return object_of(line.get("payload"))


def split(usage: dict[str, Any]) -> Four:
    """Our four from the CLI's figures, so that they add up to its own total."""
    whole = number(usage.get("input_tokens"))
    read = min(whole, number(usage.get("cached_input_tokens")))
    write = min(whole - read, number(usage.get("cache_write_input_tokens")))
    return (whole - read - write, number(usage.get("output_tokens")), write, read)


def _total(line: dict[str, Any]) -> Four | None:
    """The running total a line tells."""
    payload = _payload(line)
    usage = object_of(payload.get("info")).get("total_token_usage")
    return split(usage) if payload.get("type") == "token_count" and isinstance(usage, dict) else None


def _parent(meta: dict[str, Any]) -> str:
    """The thread this one was copied from, by a person or for a sub-agent."""
    spawned: Any = meta
    for key in ("source", "subagent", "thread_spawn", "parent_thread_id"):
        spawned = object_of(spawned).get(key)
    return _text(meta.get("forked_from_id")) or _text(spawned)


@dataclass(slots=True)
class Thread:
    """What must be remembered between two looks at one rollout."""

    ledger: Ledger
    source: int
    model: str = ""
    ident: str = ""
    total: Four = _NOTHING
    era: int = 0  # how often the CLI began to count anew
    copied: list[Four] = field(default_factory=list)  # the totals of the parent that are still to come
    inherits: bool = False  # the first total that is its own stands on what the parent had used
    # Responses that no total shows yet: their usage, the total after them, the day.
    asked: dict[str, tuple[Four, Four | None, str]] = field(default_factory=dict)
    newest: str = ""  # of those
    compacted: set[str] = field(default_factory=set)

    def restart(self) -> None:
        """The file is read from its start again; what it repeats is known by thread and total."""
        self.__init__(self.ledger, self.source)  # type: ignore[misc]  # as if it were new

    def feed(self, buffer: bytearray, end: int, offset: int) -> None:
        """Count some lines: what a Tail feeds."""
        find, stop = buffer.find, -1
        while (start := stop + 1) < end:
            stop = find(b"\n", start, end)
            stop = end if stop < 0 else stop
            if find(_SPOKEN, start, min(start + _HEAD, stop)) >= 0:
                continue
            if not offset + start or any(find(word, start, stop) >= 0 for word in _TELLING):
                self._line(as_object(buffer[start:stop]))

    def _line(self, line: dict[str, Any]) -> None:
        kind, payload = line.get("type"), _payload(line)
        if kind == "session_meta":
            self._begin(line, payload)
        elif kind == "turn_context":
            self.model = _text(payload.get("model")) or self.model
        elif kind == "token_usage_record":
            self._ask(line, payload)
        elif kind == "compacted":
            self.compacted.add(_text(payload.get("compaction_response_id")))
            self._settle(_text(payload.get("compaction_response_id")))
        elif (total := _total(line)) is not None and total != self.total:
            self._count(line, total)

    def _begin(self, line: dict[str, Any], meta: dict[str, Any]) -> None:
        self.ident = _text(meta.get("id")) or _text(meta.get("session_id"))
        if parent := _parent(meta):
            path = self.ledger.sources[self.source].path
            self.copied = history(path, parent, clock(line.get("timestamp")))
            self.inherits = True

    def _count(self, line: dict[str, Any], total: Four) -> None:
        if sum(total) < sum(self.total):
            self.total, self.era = _NOTHING, self.era + 1  # the CLI began to count anew
        a, b, c, d = (max(0, now - then) for now, then in zip(total, self.total, strict=True))
        self.total = total
        if self.copied and self.copied.pop(0) == total:
            return
        self.copied.clear()
        info = object_of(_payload(line).get("info"))
        if self.inherits and any(last := split(object_of(info.get("last_token_usage")))):
            a, b, c, d = last
        self.inherits = False
        self.model = _text(info.get("model")) or self.model
        if (latest := self.asked.get(self.newest)) and (latest[0] == (a, b, c, d) or latest[1] == total):
            del self.asked[self.newest]
        instant = _text(line.get("timestamp"))
        self._add(f"{self.ident or instant}\x00{self.era}\x00{total}", (a, b, c, d), day_of(instant))

    def _ask(self, line: dict[str, Any], payload: dict[str, Any]) -> None:
        """One response's usage. Mostly a total follows; if not, it counts where it compacted the thread."""
        ident = self.newest = _text(payload.get("response_id"))
        usage, whole = split(object_of(payload.get("usage"))), payload.get("thread_token_usage")
        after = split(whole) if isinstance(whole, dict) else None
        if ident and any(usage) and after != self.total:
            self.asked[ident] = usage, after, day_of(line.get("timestamp"))
            self._settle(ident)

    def _settle(self, ident: str) -> None:
        if ident in self.compacted and ident in self.asked:
            usage, _, day = self.asked.pop(ident)
            self._add(ident, usage, day)

    def _add(self, name: str, counts: Four, day: str) -> None:
        if any(counts):
            self.ledger.add(self.source, f"codex\x00{name}", "", counts, self.model or UNKNOWN, day)


def history(path: str, parent: str, until: float | None) -> list[Four]:
    """The totals of a thread up to an instant, each once; none when its rollout is not near this one."""
    found: list[Four] = []
    for line in _rollout(path, parent):
        at, total = clock(line.get("timestamp")), _total(line)
        if until is not None and at is not None and at > until:
            break
        if total is not None and found[-1:] != [total] and (found or any(total)):
            found.append(total)
    return found


def _rollout(path: str, thread: str) -> Iterator[dict[str, Any]]:
    """The lines of a thread's own file, which is named after it and lies in the same tree."""
    folder = os.path.dirname(os.path.abspath(path))
    tree = next((up for up in _ups(folder) if os.path.basename(up) in TREES), folder)
    for root, _, names in os.walk(tree):
        for name in names:
            if name.endswith(f"{thread}.jsonl") and os.path.join(root, name) != os.path.abspath(path):
                try:
                    with (
                        reading.opened(os.path.join(root, name)) as fd,
                        open(fd, "rb", closefd=False) as handle,
                    ):
                        yield from (as_object(line) for line in handle if _TELLING[0] in line)
                except OSError:
                    continue
                return


def _ups(folder: str) -> Iterator[str]:
    while folder != os.path.dirname(folder):
        yield folder
        folder = os.path.dirname(folder)


def head(lines: Iterator[dict[str, Any]]) -> tuple[str, str]:
    """Session id and working directory, from the opening lines."""
    for line in lines:
        if line.get("type") == "session_meta":
            meta = _payload(line)
            return _text(meta.get("session_id")) or _text(meta.get("id")), _text(meta.get("cwd"))
    return "", ""


def entries(line: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of one line. What the CLI tells the model about itself is left out."""
    kind, payload, at = line.get("type"), _payload(line), clock(line.get("timestamp"))
    what = payload.get("type")
    if kind == "response_item" and what == "message":
        yield from _message(payload, at)
    elif kind == "response_item" and what == "reasoning":
        text = content_text(payload.get("summary")) or content_text(payload.get("content"))
        if text:
            yield Entry(at, Role.THINKING, text)
    elif kind == "response_item" and what in _CALLS:
        text, more = told_call(payload.get("arguments") or payload.get("input") or payload.get("action"))
        name, call = _text(payload.get("name")) or _text(what), _text(payload.get("call_id"))
        yield Entry(at, Role.TOOL, text, name, call=call, more=more)
    elif kind == "response_item" and what in ("function_call_output", "custom_tool_call_output"):
        text = content_text(payload.get("output"))
        yield Entry(at, Role.RESULT, text, size=len(text), call=_text(payload.get("call_id")))
    elif kind == "event_msg" and what == "task_complete":
        error = payload.get("error")
        if isinstance(error, dict):
            yield Entry(at, Role.ERROR, _text(error.get("message")) or json.dumps(error), failed=True)
        else:
            yield Entry(at, Role.SYSTEM, f"turn took {number(payload.get('duration_ms')) / 1000:.1f}s")
    elif kind == "event_msg" and what == "token_count":
        info = object_of(payload.get("info"))
        if isinstance(usage := info.get("last_token_usage"), dict):
            total = json.dumps(info.get("total_token_usage"), sort_keys=True)
            yield Entry(at, Role.SYSTEM, USAGE, counts=Counts(*split(usage)), message=f"usage {total}")
    elif kind == "event_msg" and what in _TROUBLES and _text(payload.get("message")):
        yield Entry(at, Role.ERROR, _text(payload.get("message")), failed=True)
    elif kind == "event_msg" and what == "turn_aborted":
        yield Entry(at, Role.SYSTEM, f"turn stopped: {_text(payload.get('reason')) or 'no reason given'}")
    elif kind == "compacted":
        yield Entry(at, Role.SYSTEM, "conversation compacted")


_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_TROUBLES = ("error", "stream_error", "warning")
# How messages begin that the CLI writes in the user's name.
_OWN_WORDS = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>")
_SPEAKERS = {"user": Role.USER, "assistant": Role.ASSISTANT}


def _message(payload: dict[str, Any], at: float | None) -> Iterator[Entry]:
    role = _SPEAKERS.get(_text(payload.get("role")))
    text = content_text(payload.get("content"))
    if role is Role.USER and text.startswith(_OWN_WORDS):
        return
    if role and text:
        yield Entry(at, role, text, message=_text(payload.get("id")))


def _count(ledger: Ledger, source: int, _file: Ident, _fast: bool) -> Counter:  # noqa: FBT001 - see LineFormat
    thread = Thread(ledger, source)
    return thread.feed, thread.restart


def _paths(agent: Wanted, directories: Directories) -> Iterator[tuple[str, int]]:
    for home in agent.homes:
        yield from directories.walk(os.path.join(home, TREES[0]), 3)


READER = UsageReader(
    homes=homes,
    places=lambda home: tuple(os.path.join(home, tree) for tree in TREES),
    formats=(
        LineFormat(
            name=KIND,
            called="JSON lines of codex",
            marks=2,
            is_line=lambda line: "payload" in line and "type" in line,
            is_opening=lambda raw: b'"payload"' in raw,
            paths=_paths,
            head=head,
            count=_count,
            entries=entries,
            mixed=True,
        ),
    ),
)
