"""What CLIs say of themselves beside their screens: hooks, a registry, transcripts, rollouts, a server.

Each report is what the real CLI would write or answer at that moment. Fate may lose reports, break the files,
let the servers stand still, or put another user's server in their place.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleet.backends.claude.files import slug
from fleet.backends.opencode.signals import USER
from fleet.ports import Hint, Reply, Stranger
from tests.sim.agents import Mood
from tests.sim.declared import LOG_DIR, PROJECT_DIR

if TYPE_CHECKING:
    from tests.sim.agents import SimAgent
    from tests.sim.machine import Machine

HOME = "/root"
RECORDS: dict[str, tuple[dict[str, Any], ...]] = {
    "UserPromptSubmit": ({"type": "user", "message": {"content": ""}},),
    "Stop": (
        {"type": "assistant", "message": {"stop_reason": "end_turn", "model": "model-1"}},
        {"type": "system", "subtype": "turn_duration"},
    ),
    "StopFailure": ({"type": "assistant", "isApiErrorMessage": True, "message": {"content": ""}},),
}
STATUS = {"UserPromptSubmit": "busy", "PermissionRequest": "waiting"}  # of the registry; else idle
ERRORS = {Mood.AUTH: ("ProviderAuthError", 401), Mood.CONTEXT: ("ContextOverflowError", 400)}
AT_WORK = frozenset({Mood.WORK, Mood.SILENT, Mood.HUNG, Mood.STRANGE, Mood.ASK})
AWAY = frozenset({Mood.BOOT, Mood.SHELL, Mood.IMPOSTER})  # no server listens
STALLED_S = 3.0


def transcript_of(agent: SimAgent) -> str:
    """Where it keeps its conversation."""
    if agent.persona.rollout:
        born = datetime.fromtimestamp(int(agent.conversation.replace("-", "")[:12], 16) / 1000, UTC)
        name = f"rollout-{born:%Y-%m-%dT%H-%M-%S}-{agent.conversation}.jsonl"
        return f"{HOME}/.codex/sessions/{born:%Y/%m/%d}/{name}"
    return conversation_file(agent.conversation)


def conversation_file(conversation: str) -> str:
    """The transcript of a conversation whose id we chose."""
    return f"{HOME}/.claude/projects/{slug(PROJECT_DIR)}/{conversation}.jsonl"


@dataclass
class SimServer:
    """The server of one run: its newest messages, and which names it knows."""

    agent: SimAgent
    key: str
    pages: list[dict[str, Any]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


class Sources:
    """All of them, of one machine."""

    def __init__(self, machine: Machine, rng: Random) -> None:
        self._machine = machine
        self._rng = rng
        self._made = 0  # reports that were ever made
        self.lost = False  # nothing arrives
        self.trouble = ""  # of every server: "", "stalls", "faults" or "stranger"
        self.servers: dict[int, SimServer] = {}
        self.on_post: Callable[[SimAgent], None] = lambda _agent: None

    # -- reports

    def report(self, agent: SimAgent, event: str, text: str) -> None:
        """Something came about; where its kind of CLI says so, unless the disk or fate is against it."""
        kind = agent.persona
        if (kind.rollout or kind.server) and not agent.conversation:
            agent.conversation = self._identity(agent)
        if kind.server:
            self._message(agent, event, text)
        if self._machine.disk.fault or self.lost:
            return
        if kind.hooks:
            self._hook(agent, event, text)
            self._registry(agent, event)
        elif kind.transcript:
            self._transcript(agent, event, text)
        elif kind.rollout:
            self._rollout(agent, event, text)

    def _identity(self, agent: SimAgent) -> str:
        """The CLI's own choice: a thread's id begins with its birth."""
        born, rest = int(self._machine.clock.wall() * 1000), f"{self._rng.getrandbits(80):020x}"
        if agent.persona.server:
            return f"ses_{rest}"
        digits = f"{born:012x}{rest}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))

    def _spooled(self, agent: SimAgent, name: str, said: dict[str, Any]) -> None:
        self._made += 1
        path = f"{LOG_DIR}/state/signals/{agent.session.name}/{name.format(self._made)}"
        self._machine.disk.put(path, json.dumps(said).encode())
        self._machine.wake(Hint.SIGNALS)

    def _hook(self, agent: SimAgent, event: str, text: str) -> None:
        said = {"hook_event_name": event, "session_id": agent.conversation}
        said |= {"prompt" if event == "UserPromptSubmit" else "message": text}
        self._spooled(agent, "hook-{:08d}.json", said)

    def _registry(self, agent: SimAgent, event: str) -> None:
        now, proc = round(self._machine.clock.wall() * 1000), agent.proc
        said = {"pid": proc.pid, "procStart": str(proc.start), "sessionId": agent.conversation}
        said |= {"status": STATUS.get(event, "idle"), "statusUpdatedAt": now, "startedAt": now}
        self._machine.disk.put(f"{HOME}/.claude/sessions/{proc.pid}.json", json.dumps(said).encode())

    def _transcript(self, agent: SimAgent, event: str, text: str) -> None:
        """Lines at the end of its conversation's file; of a question that is open it says nothing."""
        records = []
        for record in RECORDS.get(event, ()):
            said = {**record, "timestamp": self._now(), "sessionId": agent.conversation}
            if "content" in record.get("message", {}):
                said["message"] = {**record["message"], "content": text}
            records.append(said)
        self._append(transcript_of(agent), records)

    def _rollout(self, agent: SimAgent, event: str, text: str) -> None:
        path, records = transcript_of(agent), []
        if path not in self._machine.disk.files:
            meta = {"id": agent.conversation, "timestamp": self._now(), "cwd": PROJECT_DIR}
            records.append({"type": "session_meta", "payload": {**meta, "thread_source": "user"}})
            records.append({"type": "turn_context", "payload": {"model": "model-2"}})
        records += [{"type": "event_msg", "payload": payload} for payload in _payloads(agent, event, text)]
        self._append(path, [{**record, "timestamp": self._now()} for record in records])
        if event == "Stop":
            said = {"type": "agent-turn-complete", "thread-id": agent.conversation}
            self._spooled(agent, "turn-{:08d}.notify", said)

    def _append(self, path: str, records: list[dict[str, Any]]) -> None:
        disk = self._machine.disk
        old = disk.files.get(path)
        body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        if body and path not in disk.dirs and (old is None or stat.S_ISREG(old.stat().mode)):
            disk.put(path, (bytes(old.data) if old else b"") + body)  # nothing tells us of that

    def _now(self) -> str:
        return datetime.fromtimestamp(self._machine.clock.wall(), UTC).isoformat().replace("+00:00", "Z")

    # -- servers

    def listen(self, agent: SimAgent, port: int, key: str) -> None:
        """Its server is up as soon as it is."""
        self.servers[port] = SimServer(agent, key)

    def _server_of(self, agent: SimAgent) -> SimServer | None:
        return next((s for s in self.servers.values() if s.agent is agent), None)

    def _message(self, agent: SimAgent, event: str, text: str) -> None:
        server = self._server_of(agent)
        if server is None or event == "PermissionRequest":
            return
        now = round(self._machine.clock.wall() * 1000)
        info: dict[str, Any] = {"sessionID": agent.conversation, "time": {"created": now}}
        parts = [{"type": "text", "text": text}]
        if event == "UserPromptSubmit":
            server.pages = [{"info": {**info, "role": "user"}, "parts": parts}]
            return
        info |= {"role": "assistant", "time": {"created": now, "completed": now}, "modelID": "model-3"}
        if event == "Stop":
            info["finish"] = "stop"
        else:
            name, code = ERRORS.get(agent.mood, ("APIError", 500))
            info["error"] = {"name": name, "data": {"message": text, "statusCode": code}}
        server.pages = [*server.pages[-1:], {"info": info, "parts": parts}]

    def ask(self, address: str, key: str, data: bytes | None, _timeout: float) -> Reply:
        """What the server at that address says, as `Http.ask` tells it."""
        place = urlsplit(address)
        server = self.servers.get(place.port or 0)
        if self.trouble == "stranger":
            raise Stranger(f"port {place.port} is held by another user (uid 1234)")
        if server is None or not server.agent.alive or server.agent.mood in AWAY:
            return Reply(0)
        if self.trouble == "stalls" or server.agent.proc.stopped:
            raise TimeoutError("timed out")
        if key != f"{USER}:{server.key}":
            return Reply(401, b"{}", json=True)
        if self.trouble == "faults":
            return Reply(500, b"<html>", json=False)
        if data is not None:
            return self._taken(server, json.loads(data))
        return self._page(server, place.path)

    def _page(self, server: SimServer, path: str) -> Reply:
        agent, found = server.agent, None
        mine = {"id": agent.conversation, "sessionID": agent.conversation, "directory": PROJECT_DIR}
        match path.split("/")[1:]:
            case ["session"]:
                born = {"created": round((self._machine.clock.wall() - 0.001) * 1000)}
                found = [{**mine, "time": born}] if agent.conversation else []
            case ["session", "status"]:
                found = {agent.conversation: {"type": "busy"}} if agent.mood in AT_WORK else {}
                if agent.mood is Mood.RETRY:
                    says = {"type": "retry", "message": "overloaded", "next": agent.until * 1000}
                    found = {agent.conversation: says}
            case ["session", _, "message"]:
                found = server.pages
            case ["session", _, "message", name]:
                return Reply(200 if name in server.names else 404, b"{}", json=True)
            case ["permission"]:
                found = [{**mine, "permission": "bash"}] if agent.mood is Mood.ASK else []
            case ["question"]:
                found = []
        return Reply(200, json.dumps(found).encode(), json=True)

    def _taken(self, server: SimServer, letter: dict[str, Any]) -> Reply:
        """A letter. Its answer may get lost on the way, and it may be refused before it is taken."""
        fate = self._rng.random()
        if fate < 0.05:
            return Reply(503, b"{}", json=True)
        server.names.add(letter["messageID"])
        self.on_post(server.agent)
        server.agent.posted("\n".join(part["text"] for part in letter["parts"]))
        if fate < 0.15:
            raise OSError("the connection was reset")
        return Reply(204, b"", json=False)

    @property
    def delay(self) -> float:
        """How long the next answer takes."""
        return STALLED_S if self.trouble == "stalls" else self._rng.uniform(0.005, 0.3)


def _payloads(agent: SimAgent, event: str, text: str) -> list[dict[str, Any]]:
    """The events of a rollout."""
    if event == "UserPromptSubmit":
        return [{"type": "task_started"}, {"type": "user_message", "message": text}]
    if event == "Stop":
        return [{"type": "task_complete", "last_agent_message": "done"}]
    if event != "StopFailure":
        return []
    said: list[dict[str, Any]] = []
    if agent.mood is Mood.LIMIT:
        full = {"used_percent": 100.0, "resets_at": agent.account.printed}
        said.append({"type": "token_count", "rate_limits": {"primary": full}})
    return [*said, {"type": "error", "message": text}, {"type": "task_complete", "error": {"message": text}}]
