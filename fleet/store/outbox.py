"""state/outbox: one document per message, from the wish to say it to the receipt.

`<agent>.<id>.json` holds what is to be said, how far it got, and why. Verbs and the loop put documents there;
putting one twice is harmless. Only the watchdog, or a verb in its place, changes one. `<agent>.<id>.withdraw`
says that its writer does not want it any more. A document that came to its end is the receipt; it is kept for
a day, and the newest two hundred of them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator

from fleet.core.codec import from_plain, to_plain
from fleet.core.decision import Fault
from fleet.core.memory import Message
from fleet.core.words import FINAL, MessageKind, MessageState
from fleet.ports import Disk
from fleet.times.moment import Wall, later

OPEN_MAX = 1000
FINAL_MAX = 200
FINAL_AGE_S = 86400.0
WHOLE = 4000  # characters of a text that is known whole: then a person's words before it are seen as theirs
_CAP = 1 << 20
_DOCUMENT, _WITHDRAWAL = ".json", ".withdraw"

Key = tuple[str, str]  # agent, id


class OutboxFull(Fault):
    """Too many messages wait already, or this one is too long."""


class Outbox:
    """Both sides of the exchange, and what this process knows of the documents."""

    def __init__(self, disk: Disk, state_dir: str, wall: Callable[[], Wall]) -> None:
        self._disk = disk
        self._dir = f"{state_dir}/outbox"
        self._wall = wall
        self._known: dict[Key, Message] = {}  # as they are on disk
        self._unreadable: set[Key] = set()
        self._looked = False

    # --- for the sender -----------------------------------------------------------------------------

    def new_id(self) -> str:
        """An id that sorts by its time."""
        return f"{int(self._wall() * 1000):x}-{os.urandom(3).hex()}"

    def put(self, agent: str, message: Message) -> None:
        """Durably; nothing when there is a document of this id already."""
        if self._disk.stat(self._path(agent, message.id)) is not None:
            return
        if len(self._disk.names(self._dir)) >= OPEN_MAX + FINAL_MAX:
            raise OutboxFull(f"{OPEN_MAX} messages wait in {self._dir}: is the watchdog running?")
        self._write(agent, message._replace(asked=Wall(round(self._wall(), 3))))

    def withdraw(self, agent: str, message_id: str) -> None:
        """It is not wanted any more; once typing has begun that comes too late."""
        self._disk.write(f"{self._dir}/{agent}.{message_id}{_WITHDRAWAL}", b"")

    def read(self, agent: str, message_id: str) -> Message | None:
        """The document as it is on disk now; None when there is none that can be read."""
        try:
            return _message(self._disk.read(self._path(agent, message_id), _CAP))
        except (FileNotFoundError, ValueError):
            return None

    def listed(self) -> tuple[tuple[str, Message], ...]:
        """All documents with their agents, oldest first."""
        found = [(agent, m) for agent, message_id in self._keys() if (m := self.read(agent, message_id))]
        return tuple(sorted(found, key=lambda one: (one[1].asked, one[0], one[1].id)))

    # --- for the watchdog, or a verb in its place -----------------------------------------------------

    def news(self) -> list[tuple[str, Message]]:
        """Documents that were put here since the last look, oldest first."""
        fresh = [key for key in self._keys() if key not in self._known and key not in self._unreadable]
        found = []
        for agent, message_id in fresh:
            try:
                message = _message(self._disk.read(self._path(agent, message_id), _CAP))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                self._unreadable.add((agent, message_id))
                said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                why = f"its document could not be read: {said}"
                with contextlib.suppress(OSError):  # what is no file stays, and is not looked at again
                    failed = Message(message_id, MessageKind.SEND, status=MessageState.FAILED, why=why)
                    self._end(agent, failed)
                continue
            self._known[agent, message_id] = message
            found.append((agent, _light(message)))
        self._looked = True
        return sorted(found, key=lambda one: (one[1].asked, one[1].id))

    def read_again(self, agent: str) -> None:
        """Another process was at work on this agent's messages: what is known of them is what is on disk."""
        mine = [key for key in self._keys() if key[0] == agent]
        self._known = {key: m for key, m in self._known.items() if key[0] != agent}
        self._known |= {key: m for key in mine if (m := self.read(*key)) is not None}

    def withdrawals(self) -> Iterator[Key]:
        """Which ones are not wanted any more. Each is named until `settle_withdrawal`."""
        for name in self._disk.names(self._dir):
            agent, dot, rest = name.partition(".")
            if dot and name.endswith(_WITHDRAWAL):
                yield agent, rest.removesuffix(_WITHDRAWAL)

    def settle_withdrawal(self, agent: str, message_id: str) -> None:
        """It was heeded, or came too late."""
        self._disk.remove(f"{self._dir}/{agent}.{message_id}{_WITHDRAWAL}")

    def open_of(self, agent: str) -> tuple[Message, ...]:
        """What is still to be said to an agent, oldest first."""
        return tuple(_light(m) for m in self._of(agent) if m.status not in FINAL)

    def ended_of(self, agent: str) -> tuple[Message, ...]:
        """What came to its end lately, oldest first."""
        ended = (_light(m) for m in self._of(agent) if m.status in FINAL)
        return tuple(sorted(ended, key=lambda m: m.ended))

    def text_of(self, agent: str, message_id: str) -> str:
        """The whole text of a long one; empty when this process knows of none."""
        known = self._known.get((agent, message_id))
        return known.text if known is not None else ""

    def save(self, agent: str, waiting: Iterable[Message], ended: Iterable[Message] = ()) -> None:
        """Make these the documents of an agent. One that is in neither was replaced: it is withdrawn."""
        final = {m.id: m for m in ended}
        there = {m.id: m for m in waiting if m.id not in final}
        for (name, message_id), known in list(self._known.items()):
            if name == agent and known.status not in FINAL and message_id not in there | final:
                why = "it is not worth saying any more"
                final[message_id] = known._replace(status=MessageState.WITHDRAWN, why=why)
        for message in there.values():
            known_one = self._known.get((agent, message.id))
            if known_one is None or _light(known_one)._replace(queued=message.queued) != message:
                self._keep(agent, self._whole(agent, message))
        for message in final.values():
            self._end(agent, self._whole(agent, message))

    def _whole(self, agent: str, message: Message) -> Message:
        return message._replace(text=self.text_of(agent, message.id)) if message.long else message

    def _end(self, agent: str, message: Message) -> None:
        self._keep(agent, message._replace(ended=Wall(round(self._wall(), 3))))
        self._prune()

    def _prune(self) -> None:
        final = sorted((m.ended, key) for key, m in self._known.items() if m.status in FINAL)
        oldest = later(self._wall(), -FINAL_AGE_S)
        for number, (ended, key) in enumerate(final):
            if number < len(final) - FINAL_MAX or ended < oldest:
                self._disk.remove(self._path(*key))
                del self._known[key]

    def _of(self, agent: str) -> list[Message]:
        if not self._looked:
            self.news()
        found = (m for (name, _), m in self._known.items() if name == agent)
        return sorted(found, key=lambda m: (m.asked, m.id))

    def _keys(self) -> list[Key]:
        found = []
        for name in self._disk.names(self._dir):
            agent, dot, rest = name.partition(".")
            if agent and dot and rest.endswith(_DOCUMENT):
                found.append((agent, rest.removesuffix(_DOCUMENT)))
        return found

    def _path(self, agent: str, message_id: str) -> str:
        return f"{self._dir}/{agent}.{message_id}{_DOCUMENT}"

    def _keep(self, agent: str, message: Message) -> None:
        self._write(agent, message)
        self._known[agent, message.id] = message

    def _write(self, agent: str, message: Message) -> None:
        data = json.dumps(to_plain(message)).encode() + b"\n"
        if len(data) >= _CAP:
            raise OutboxFull(f"a message holds less than {_CAP >> 10} KiB: put it into a file and name that")
        if self._disk.stat(self._dir) is None:  # an agent's `git clean` may have taken it away
            self._disk.make_dir(self._dir)
        self._disk.write(self._path(agent, message.id), data)


def _light(message: Message) -> Message:
    """Without a text that is too long to be compared with a screen at every look: its end will do."""
    if len(message.text) <= WHOLE:
        return message
    return message._replace(text="", long=True)


def _message(raw: bytes) -> Message:
    """ValueError for what is no message."""
    try:
        return from_plain(Message, json.loads(raw))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
