r"""Claude Code: JSON lines, one for each content block of a message, each with the usage of all of it.

Decoding JSON is what counting costs, so most lines are passed over undecoded. That must never change a
figure. Three rules say what is passed over; `feeder` applies them in this order.

**1. A line that repeats the message just counted.** A message of several blocks stands on several lines:

    {.. "isSidechain":false .. "message":{.. "id":"M" .. CONTENT .. "usage":{..} ..} .. "requestId":"R" ..}
        \________________ head ________________/                    \________________ tail ________________/

Let K be a decoded line of message M and request R. A later line L of the same file is passed over if it has
the same tail as far from its end, and the same head before that. Then decoding L would give the same message,
request, side-chain mark and usage as K did, with the advice that is part of the usage:

- Inside of a JSON string a quotation mark is escaped. The quotation marks of head and tail are not, so what
  an agent says or a tool prints is never taken for them. Keys of the same names can stand in the input of a
  tool. That is part of CONTENT, before the usage, and it would have to repeat head or tail whole, with an id
  that the provider made up for the very message that is being written.
- The head has the mark and M, the tail has the usage and R. A copy by a sub-agent has another mark, or stands
  deeper in its line and has another head.
- Model and time may differ, and do not matter. Of lines that are equal in message, request, mark and figures
  the Ledger keeps the one it has, and it has K or a line with more tokens.

A line without a request id, or with its keys in another order, has no head and tail, and the next is decoded.

**2. A line of the user.** It has no usage under `message`, whatever it quotes; the total of a sub-agent,
which it repeats under `toolUseResult`, is not counted. Such a line is known by the first role in its first
kilobyte, because a message tells its role before its content. A usage in the last kilobyte overrules that.

**3. A line without a usage.** Every usage of the CLI has the key `"output_tokens"`; a gateway may leave it
out but has some count of input. The key is looked for near the end first, where the CLI writes it. A hit may
be a quotation; that does no harm, because the line is then decoded as a whole.

A test holds the scanner against decoding every line.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

from fleet.backends.claude import files
from fleet.backends.ledger import ABSURD, UNKNOWN, Counts, Four, Ledger, number
from fleet.backends.readers import (
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
    told_call,
)
from fleet.backends.readers import text_of as _text
from fleet.reading import Feed, Ident
from fleet.text import as_object

KIND = "claude"
SYNTHETIC = "<synthetic>"  # the model of lines the CLI wrote itself: errors, limits
_KEY = b'"output_tokens"'
_OTHER_KEY = b'input_tokens"'  # read and written ones too; a gateway may leave the output out
_ROLE = b'"role":"'
_NEAR_END = 1 << 10  # bytes; what the CLI writes from the usage to the end fits in there
_USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LIFETIMES = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")  # cache writes, told apart
_UNIQUE = "msg_"  # how ids begin that the provider never gives twice; a gateway's may all be the same word
_ADVICE = "advisor_message"  # another model was asked on the way; the message's own figures leave it out

# What is counted of one line: message id, request id, model, day, counts, said by a sub-agent, advice.
# A plain tuple, because a quarter of a million of them are made for a gigabyte.
Advice = tuple[tuple[str, Four], ...]
Line = tuple[str, str, str, str, Four, bool, Advice]
Decode = Callable[[memoryview], Line | None]


def session_of(path: str) -> str:
    """The conversation a file belongs to; a sub-agent's file lies under its parent's id."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) == "subagents":
        return os.path.basename(os.path.dirname(folder))
    return os.path.basename(path).removesuffix(".jsonl")


def lenient(raw: bytes | memoryview) -> Line | None:
    """Decode with the standard library, forgiving bytes that are not UTF-8 and odd types."""
    line, side = _speaker(as_object(bytes(raw)))
    message = line.get("message")
    if not isinstance(message, dict) or not isinstance(usage := message.get("usage"), dict):
        return None
    model = _text(message.get("model"))
    if model == SYNTHETIC:
        return None
    model = _at_speed(model, usage.get("speed"))
    ident, request = _text(message.get("id")), _text(line.get("requestId"))
    return ident, request, model, day_of(line.get("timestamp")), four(usage), side, _advice(usage)


def _speaker(line: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The line itself, or what a sub-agent said within it while it was at work; and whether that is so."""
    progress = line.get("data") if line.get("message") is None else None
    if isinstance(progress, dict) and isinstance(progress.get("message"), dict):
        return progress["message"], True
    return line, line.get("isSidechain") is True


def four(usage: dict[str, Any]) -> Four:
    """Our four of one usage. Cache writes may be told as a sum, by lifetime, or as both."""
    given, output, write, read = (number(usage.get(name)) for name in _USAGE)
    lifetimes = usage.get("cache_creation")
    if isinstance(lifetimes, dict):
        write = max(write, sum(number(lifetimes.get(name)) for name in _LIFETIMES))
    return given, output, write, read


def _advice(usage: dict[str, Any]) -> Advice:
    steps = usage.get("iterations")
    told = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return tuple((_text(step.get("model")), four(step)) for step in told if step.get("type") == _ADVICE)


def _at_speed(model: str, speed: Any) -> str:
    """The fast mode of a model is billed as another one."""
    return f"{model}-fast" if speed == "fast" else model


@functools.cache
def _decoder(*, fast: bool) -> Decode:
    if fast:
        try:
            return quick()
        except ImportError:
            pass  # the standard library gives the same figures, more slowly
    return lenient


def quick() -> Decode:
    """A decoder that builds only the counted fields; whatever it does not like goes the lenient way."""
    import msgspec

    def shape(name: str, *fields: Any) -> Any:
        # Built by call, not by annotation: kept as text, annotations could not be resolved here.
        return msgspec.defstruct(name, fields, gc=False)

    lifetimes_row = shape("lifetimes_row", *((name, int, 0) for name in _LIFETIMES))
    usage_row = shape(
        "usage_row",
        *((name, int, 0) for name in _USAGE),
        ("cache_creation", lifetimes_row | None, None),
        ("speed", str | None, None),
        ("iterations", msgspec.Raw, msgspec.Raw()),
    )
    message_row = shape("message_row", ("id", str, ""), ("model", str, ""), ("usage", usage_row | None, None))
    line_fields = (("message", message_row | None, None), ("requestId", str, ""), ("timestamp", str, ""))
    progress_row = shape("progress_row", ("message", shape("said_row", *line_fields) | None, None))
    row_type = shape("row", *line_fields, ("isSidechain", bool, False), ("data", progress_row | None, None))
    decode: Callable[[Any], Any] = msgspec.json.Decoder(row_type).decode

    def line(raw: memoryview) -> Line | None:
        try:
            row = decode(raw)
        except (ValueError, RecursionError):
            return lenient(raw)
        if row.message is not None:
            said, side = row, row.isSidechain
        elif row.data is not None and row.data.message is not None:
            said, side = row.data.message, True
        else:
            return None
        message = said.message
        if message is None or (usage := message.usage) is None or message.model == SYNTHETIC:
            return None
        given, output = usage.input_tokens, usage.output_tokens
        write, read = usage.cache_creation_input_tokens, usage.cache_read_input_tokens
        if (lives := usage.cache_creation) is not None:
            write = max(write, lives.ephemeral_5m_input_tokens + lives.ephemeral_1h_input_tokens)
        counts = (given, output, write, read)
        if min(counts) < 0 or max(counts) >= ABSURD:
            return lenient(raw)
        if usage.iterations and b'"advisor_message"' in bytes(usage.iterations):
            return lenient(raw)
        model = message.model if usage.speed is None else _at_speed(message.model, usage.speed)
        stamp = said.timestamp
        day = stamp[:10] if stamp[-1:] == "Z" else day_of(stamp)
        return message.id, said.requestId, model, day, counts, side, ()

    return line


def feeder(ledger: Ledger, source: int, file: Ident, decode: Decode) -> Feed:
    """The function that a Tail feeds: pours a file's usage into the ledger. The module says how and why."""
    add = ledger.add
    head = tail = b""
    far = 0  # from the tail's first byte to the end of its line

    def feed(buffer: bytearray, end: int, offset: int) -> None:
        nonlocal head, tail, far
        find, rfind, startswith = buffer.find, buffer.rfind, buffer.startswith
        view, stop = memoryview(buffer), -1
        while (start := stop + 1) < end:
            stop = find(b"\n", start, end)
            if stop < 0:
                stop = end
            at = stop - far
            if tail and at > start and startswith(tail, at) and find(head, start, at) >= 0:
                continue
            near = max(start, stop - _NEAR_END)
            hit = rfind(_KEY, near, stop)
            if hit < 0:
                role = find(_ROLE, start, min(start + _NEAR_END, near))
                if role >= 0 and startswith(b"user", role + len(_ROLE)):
                    continue
                hit = find(_KEY, start, near + len(_KEY))
                if hit < 0 and (hit := find(_OTHER_KEY, start, stop)) < 0:
                    continue
            raw = view[start:stop]
            if (line := decode(raw)) is None:
                continue
            ident, request, model, day, counts, side, advice = line
            if not ident:
                ident = f"\x00{file}:{offset + start}:{crc32(raw)}"
            elif request:
                head, tail, far = _landmarks(buffer, start, hit, stop, ident, request)
            elif not ident.startswith(_UNIQUE):
                # The blocks of one message share their prompt, if not their output.
                ident = f"{ident}\x00{counts[0]},{counts[2]},{counts[3]}"
            add(source, ident, request, counts, model or UNKNOWN, day, side)
            for number_, (adviser, its) in enumerate(advice):
                add(source, f"{ident}\x00advice {number_}", request, its, adviser or UNKNOWN, day, side)

    return feed


def _landmarks(
    buffer: bytearray, start: int, hit: int, stop: int, ident: str, request: str
) -> tuple[bytes, bytes, int]:
    """Head and tail of a line with a usage around `hit`, and how far from its end the tail begins."""
    name, last = b'"id":"%b"' % ident.encode(), b'"requestId":"%b"' % request.encode()
    usage, close = buffer.rfind(b'"usage":', start, hit), buffer.find(last, hit, stop)
    at = buffer.find(name, start, usage) if usage >= 0 else -1
    mark = buffer.find(b'"isSidechain":', start, at) if at >= 0 else -1
    if mark < 0 or close < 0:
        return b"", b"", 0
    return bytes(buffer[mark : at + len(name)]), bytes(buffer[usage : close + len(last)]), stop - usage


def head(lines: Iterator[dict[str, Any]]) -> tuple[str, str]:
    """Session id and first working directory, from the opening lines. The folder's name does not tell."""
    session = cwd = ""
    for line in lines:
        session = session or _text(line.get("sessionId"))
        cwd = cwd or _text(line.get("cwd"))
        if session and cwd:
            break
    return session, cwd


def entries(line: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of one line; unknown types give none.

    Nor do the steps of a sub-agent that its parent repeats: its own file tells them.
    """
    kind, at = line.get("type"), clock(line.get("timestamp"))
    side = line.get("isSidechain") is True
    message = line.get("message")
    if kind in ("user", "assistant") and isinstance(message, dict):
        yield from _blocks(line, message, at, side=side)
    elif kind == "system":
        text = _text(line.get("content"))
        if line.get("subtype") == "turn_duration":
            text = f"turn took {number(line.get('durationMs')) / 1000:.1f}s"
        elif line.get("subtype") == "compact_boundary":
            text = text or "conversation compacted"
        if text:
            yield Entry(at, Role.SYSTEM, text, side=side)
    elif kind == "queue-operation" and _text(line.get("content")):
        yield Entry(at, Role.SYSTEM, f"queued: {_text(line.get('content'))}", side=side)
    elif kind == "summary" and _text(line.get("summary")):
        yield Entry(at, Role.SYSTEM, f"summary: {_text(line.get('summary'))}", side=side)


def _blocks(
    line: dict[str, Any], message: dict[str, Any], at: float | None, *, side: bool
) -> Iterator[Entry]:
    content, ident, model = message.get("content"), _text(message.get("id")), _text(message.get("model"))
    failed = line.get("isApiErrorMessage") is True or model == SYNTHETIC
    counts: Counts | None = None
    usage = message.get("usage")
    if isinstance(usage, dict) and not failed:
        counts = Counts(*four(usage))
    speaker = Role.USER if line.get("type") == "user" else Role.ASSISTANT
    if line.get("isMeta") is True:
        speaker = Role.SYSTEM  # the CLI's own words, in the user's place
    for part in content if isinstance(content, list) else [content]:
        block = part if isinstance(part, dict) else {"type": "text", "text": part}
        kind = block.get("type")
        if kind == "text":
            role, text = Role.ERROR if failed else speaker, content_text(block.get("text"))
            if text:
                yield Entry(at, role, text, "", None, counts, model, ident, side, failed)
        elif kind in ("thinking", "redacted_thinking"):
            text = _text(block.get("thinking")) or "(not shown by the CLI)"
            yield Entry(at, Role.THINKING, text, "", None, counts, model, ident, side)
        elif kind in ("tool_use", "server_tool_use"):
            text, more = told_call(block.get("input"))
            name, call = _text(block.get("name")), _text(block.get("id"))
            yield Entry(at, Role.TOOL, text, name, None, counts, model, ident, side, call=call, more=more)
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            text = content_text(block.get("content"))
            wrong = block.get("is_error") is True
            call = _text(block.get("tool_use_id"))
            yield Entry(at, Role.RESULT, text, "", len(text), None, "", ident, side, wrong, call)
        elif isinstance(kind, str):
            yield Entry(at, speaker, f"[{kind}]", "", None, counts, model, ident, side)


def _count(ledger: Ledger, source: int, file: Ident, fast: bool) -> Counter:  # noqa: FBT001 - see LineFormat
    return feeder(ledger, source, file, _decoder(fast=fast)), None


def _paths(agent: Wanted, directories: Directories) -> Iterator[tuple[str, int]]:
    """Files in the folder of the agent's directory, and its sessions wherever else they lie."""
    missing = set(agent.sessions)
    for home in agent.homes:
        projects = os.path.join(home, files.PROJECTS)
        for folder in dict.fromkeys(files.slug(directory) for directory in agent.directories):
            for path, inode in directories.walk(os.path.join(projects, folder), 2):
                missing.discard(session_of(path))
                yield path, inode
    for home in agent.homes if missing else ():
        for folder in directories.folders(os.path.join(home, files.PROJECTS)):
            for session in missing:
                path = os.path.join(folder, f"{session}.jsonl")
                if os.path.exists(path):
                    yield path, 0
                    yield from directories.walk(os.path.join(folder, session), 1)


def _is_line(line: dict[str, Any]) -> bool:
    return "sessionId" in line or "message" in line or line.get("type") == "summary"


READER = UsageReader(
    homes=files.homes,
    places=lambda home: (os.path.join(home, files.PROJECTS),),
    formats=(
        LineFormat(
            name=KIND,
            called="JSON lines of claude",
            marks=1,
            is_line=_is_line,
            is_opening=lambda raw: b'"sessionId"' in raw or b'"message"' in raw,
            paths=_paths,
            head=head,
            count=_count,
            entries=entries,
            session_of=session_of,
            folder_of=files.slug,
        ),
    ),
)
