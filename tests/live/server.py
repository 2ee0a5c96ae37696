"""A model server on the loopback that does as it is told: no key, no network, no cost.

It speaks Anthropic Messages, OpenAI chat completions and OpenAI responses, streaming or not. What it does
for a request is a Behaviour, found in this order: the head of the control queue, the sticky behaviour, a
directive `%%{json}%%` in the newest user message, else a plain greeting. Side requests (titles, summaries:
they offer no tools) are always answered plainly, so that a scripted fault hits the turn it was meant for.

  text "..."            what is said            delay s    between pieces of it     ttfb s   before the first
  thinking "..."        said first, as thought  tool {name, input}  asked for after the text
  after {behaviour}     the answer to the tool's result     usage {input, output, cache_read, cache_write}
  status n              an HTTP error with headers {} and error {type, message, ...}
  cut n                 the connection drops after n pieces    stall [n, s]  silence after n pieces

POST /__control {"queue": [..], "sticky": {..} or null, "clear": true}; GET /__log lists what was asked.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]

GREETING = "Hello from the loopback model."
ASIDE = re.compile(r"<([a-z][\w-]*)[^>]*>.*?</\1>", re.DOTALL)
DIRECTIVE = re.compile(r"%%(\{.*?\})%%", re.DOTALL)
PIECE = 12  # characters in one streamed piece


class Cut(Exception):
    """The behaviour says that the connection drops here."""


class Script:
    """What the server was told to do, and what it was asked."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queue: list[Json] = []
        self.sticky: Json | None = None
        self.log: list[Json] = []

    def control(self, order: Json) -> None:
        with self.lock:
            if order.get("clear"):
                self.queue, self.sticky, self.log = [], None, []
            self.queue += order.get("queue", [])
            if "sticky" in order:
                self.sticky = order["sticky"]

    def behaviour(self, path: str, body: Json, turn: Turn) -> Json:
        with self.lock:
            entry = {"at": time.time(), "path": path, "model": body.get("model", ""), "side": turn.side}
            heard = {"user": turn.user, "said": turn.said, "raw": turn.raw, "tool_result": turn.tool_result}
            self.log.append(entry | heard)
            if turn.side:
                return {"text": "A short title"}
            if self.queue:
                return self.queue.pop(0)
            if self.sticky is not None:
                return self.sticky
        found = directive(turn.user)
        if turn.tool_result:
            return (found or {}).get("after") or {"text": "Tool finished."}
        return found or {"text": GREETING}


class Turn:
    """The newest exchange of a request, the same for all three protocols."""

    def __init__(self, user: str, said: list[str], *, tool_result: bool, side: bool) -> None:
        self.user, self.said, self.tool_result, self.side = user, said, tool_result, side
        self.raw: list[list[str]] = []  # every part of every message of the user's, to the letter


def directive(text: str) -> Json | None:
    """The last behaviour written into a prompt, if there is one."""
    for found in reversed(DIRECTIVE.findall(text)):
        try:
            value: Json = json.loads(found)
        except ValueError:
            continue
        return value
    return None


def texts(content: Any) -> str:
    """The words of a message, however its content is spelt."""
    if isinstance(content, str):
        return content
    parts = [p.get("text", "") for p in content or [] if isinstance(p, dict) and "text" in str(p.get("type"))]
    return "\n".join(part for part in parts if isinstance(part, str))


def turn_of(body: Json) -> Turn:
    """Who spoke last, and what."""
    items = body.get("messages") or body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    user, said, result, fresh = "", [], False, True
    for item in items:
        content = item.get("content")
        parts = content if isinstance(content, list) else []
        kinds = {part.get("type") for part in parts if isinstance(part, dict)}
        returned = "tool_result" in kinds or item.get("role") == "tool"
        if returned or str(item.get("type", "")).endswith("_call_output"):
            result = True
        elif item.get("role") == "user":
            # What the CLI adds in tags is not the user's; several messages in a row are one turn.
            words = ASIDE.sub("", texts(content)).strip()
            said += [words] if words else []
            user, result, fresh = (words if fresh else f"{user}\n{words}"), False, False
        elif item.get("role") == "assistant" or item.get("type") in {"function_call", "custom_tool_call"}:
            result, fresh = False, True
    turn = Turn(user, said, tool_result=result, side=not body.get("tools"))
    turn.raw = [parts_of(item.get("content")) for item in items if item.get("role") == "user"]
    return turn


def parts_of(content: Any) -> list[str]:
    """The words of a message, part by part, as they are."""
    if isinstance(content, str):
        return [content]
    return [p["text"] for p in content or [] if isinstance(p, dict) and isinstance(p.get("text"), str)]


def pieces(behaviour: Json, text: str) -> Any:
    """The text in pieces, at the pace and with the accidents the behaviour asks for."""
    cut, stall = behaviour.get("cut"), behaviour.get("stall")
    for n, start in enumerate(range(0, max(len(text), 1), PIECE)):
        if cut is not None and n >= cut:
            raise Cut
        if stall and n == stall[0]:
            time.sleep(stall[1])
        yield text[start : start + PIECE]
        time.sleep(behaviour.get("delay", 0.0))
    if cut is not None:
        raise Cut


def usage_of(behaviour: Json) -> tuple[int, int, int, int]:
    """Input, output, cache reads and cache writes."""
    usage = {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0} | behaviour.get("usage", {})
    return usage["input"], usage["output"], usage["cache_read"], usage["cache_write"]


def short(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]


def messages(behaviour: Json, body: Json) -> Any:
    """Anthropic Messages as server-sent events."""
    read, wrote, hit, kept = usage_of(behaviour)
    usage = {"input_tokens": read, "cache_read_input_tokens": hit, "cache_creation_input_tokens": kept}
    head = {"id": short("msg_"), "type": "message", "role": "assistant", "model": body.get("model")}
    head |= {"content": []}
    head |= {"stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"message": head}
    index = 0
    for kind in ("thinking", "text"):
        words = behaviour.get(kind)
        if not words:
            continue
        empty = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
        yield "content_block_start", {"index": index, "content_block": empty}
        for piece in pieces(behaviour if kind == "text" else {"delay": behaviour.get("delay", 0)}, words):
            yield "content_block_delta", {"index": index, "delta": {"type": f"{kind}_delta", kind: piece}}
        if kind == "thinking":
            signed = {"type": "signature_delta", "signature": "bG9vcGJhY2s="}
            yield "content_block_delta", {"index": index, "delta": signed}
        yield "content_block_stop", {"index": index}
        index += 1
    tool = behaviour.get("tool")
    if tool:
        block = {"type": "tool_use", "id": short("toolu_"), "name": tool["name"], "input": {}}
        yield "content_block_start", {"index": index, "content_block": block}
        part = {"type": "input_json_delta", "partial_json": json.dumps(tool.get("input", {}))}
        yield "content_block_delta", {"index": index, "delta": part}
        yield "content_block_stop", {"index": index}
    stop = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {**usage, "output_tokens": wrote}}
    yield "message_stop", {}


def whole_message(behaviour: Json, body: Json) -> Json:
    """The same without streaming."""
    read, wrote, hit, kept = usage_of(behaviour)
    content: list[Json] = [{"type": "text", "text": behaviour.get("text", "")}]
    if behaviour.get("tool"):
        content.append({"type": "tool_use", "id": short("toolu_"), **behaviour["tool"]})
    usage = {"input_tokens": read, "output_tokens": wrote}
    usage |= {"cache_read_input_tokens": hit, "cache_creation_input_tokens": kept}
    head = {"id": short("msg_"), "type": "message", "role": "assistant", "model": body.get("model")}
    stop = "tool_use" if behaviour.get("tool") else "end_turn"
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def chat(behaviour: Json, body: Json) -> Any:
    """OpenAI chat completions as server-sent events."""
    read, wrote, hit, _ = usage_of(behaviour)
    head = {"id": short("chatcmpl-"), "object": "chat.completion.chunk", "created": int(time.time())}
    head["model"] = body.get("model")

    def chunk(delta: Json, finish: str | None = None, **more: Any) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(behaviour, behaviour.get("text", "")):
        yield chunk({"content": piece})
    tool = behaviour.get("tool")
    if tool:
        call = {"name": tool["name"], "arguments": json.dumps(tool.get("input", {}))}
        calls = [{"index": 0, "id": short("call_"), "type": "function", "function": call}]
        yield chunk({"tool_calls": calls})
    usage = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
    usage["prompt_tokens_details"] = {"cached_tokens": hit}
    yield chunk({}, "tool_calls" if tool else "stop", usage=usage)


def responses(behaviour: Json, body: Json) -> Any:
    """OpenAI responses as server-sent events."""
    read, wrote, hit, _ = usage_of(behaviour)
    head: Json = {"id": short("resp_"), "object": "response", "created_at": int(time.time()), "output": []}
    head |= {"model": body.get("model"), "status": "in_progress"}
    yield "response.created", {"response": head}
    output: list[Json] = []
    if behaviour.get("text"):
        item: Json = {"type": "message", "id": short("msg_"), "role": "assistant", "status": "in_progress"}
        yield "response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield "response.content_part.added", {**place, "part": part}
        for piece in pieces(behaviour, behaviour["text"]):
            yield "response.output_text.delta", {**place, "delta": piece}
        done = {**part, "text": behaviour["text"]}
        yield "response.output_text.done", {**place, "text": behaviour["text"]}
        yield "response.content_part.done", {**place, "part": done}
        output.append({**item, "status": "completed", "content": [done]})
        yield "response.output_item.done", {"output_index": 0, "item": output[-1]}
    tool = behaviour.get("tool")
    if tool:
        call = {"type": "function_call", "id": short("fc_"), "call_id": short("call_"), "status": "completed"}
        output.append({**call, "name": tool["name"], "arguments": json.dumps(tool.get("input", {}))})
        yield "response.output_item.added", {"output_index": len(output) - 1, "item": output[-1]}
        yield "response.output_item.done", {"output_index": len(output) - 1, "item": output[-1]}
    usage: Json = {"input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote}
    usage |= {
        "input_tokens_details": {"cached_tokens": hit},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    yield (
        "response.completed",
        {"response": {**head, "status": "completed", "output": output, "usage": usage}},
    )


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, *_: object) -> None:
        """Silence: what was asked is in the log that /__log serves."""

    def do_GET(self) -> None:
        if self.path == "/__log":
            with self.script.lock:
                self.answer(200, {"requests": list(self.script.log)})
        elif self.path.split("?")[0].endswith("/models"):
            self.answer(
                200, {"object": "list", "data": [{"id": "loop-model", "object": "model"}], "models": []}
            )
        else:
            self.answer(404, {"error": {"type": "not_found_error", "message": "no such page"}})

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body: Json = json.loads(raw or b"{}")
        except ValueError:
            self.answer(400, {"error": {"type": "invalid_request_error", "message": "not JSON"}})
            return
        path = self.path.split("?")[0]
        if path == "/__control":
            self.script.control(body)
            self.answer(200, {"ok": True})
        elif path.endswith("/count_tokens"):
            self.answer(200, {"input_tokens": 100})
        elif path.endswith(("/v1/messages", "/chat/completions", "/responses")):
            self.model(path, body)
        else:
            self.answer(200, {})

    def model(self, path: str, body: Json) -> None:
        behaviour = self.script.behaviour(path, body, turn_of(body))
        time.sleep(behaviour.get("ttfb", 0.0))
        status = behaviour.get("status")
        if status:
            error = {"type": "api_error", "message": "as asked", **behaviour.get("error", {})}
            self.answer(status, {"type": "error", "error": error}, behaviour.get("headers", {}))
            return
        events = path.endswith("/v1/messages"), path.endswith("/responses")
        if not body.get("stream"):
            self.answer(200, whole_message(behaviour, body) if events[0] else {"choices": [], "output": []})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        for name, value in behaviour.get("headers", {}).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.close_connection = True
        try:
            if events[0] or events[1]:
                for n, (kind, data) in enumerate((messages if events[0] else responses)(behaviour, body)):
                    self.event(json.dumps({"type": kind, "sequence_number": n, **data}), kind)
            else:
                for data in chat(behaviour, body):
                    self.event(json.dumps(data))
                self.event("[DONE]")
        except (Cut, BrokenPipeError, ConnectionResetError):
            self.connection.close()

    def event(self, data: str, kind: str = "") -> None:
        head = f"event: {kind}\n" if kind else ""
        self.wfile.write(f"{head}data: {data}\n\n".encode())
        self.wfile.flush()

    def answer(self, status: int, document: Json, headers: Json | None = None) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)


class Server:
    """The server in a thread of this process; `url` is where it listens."""

    def __init__(self, port: int = 0) -> None:
        self.script = Script()
        handler = type("BoundHandler", (Handler,), {"script": self.script})
        self.http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description="a scripted model server on the loopback")
    parser.add_argument("--port", type=int, default=8765)
    server = Server(parser.parse_args().port)
    print(f"listening on {server.url}", flush=True)
    server.http.serve_forever()


if __name__ == "__main__":
    main()
