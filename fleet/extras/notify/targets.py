"""How a message gets to a person: a command, the desktop, or any service that apprise speaks to.

Whatever agents and screens put into a text arrives as text: control characters and secrets are taken out
here, once, for every target. An address comes from the environment and appears in no message of ours.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet import engine
from fleet.core.model import Notify
from fleet.extras.notify.notices import Notice
from fleet.text import for_display, one_line, redact, secret_values

VERSION = 1
TIMEOUT_S = 30.0
TEXT_CAP = 1000  # of one notice
LINES_CAP = 20  # of a digest; a service refuses what is too long
APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What is sent: one notice, or several in one go."""

    project: str
    notices: tuple[Notice, ...]

    @property
    def kind(self) -> str:
        """The notice's kind; several of them are a digest."""
        return self.notices[0].kind if len(self.notices) == 1 else "digest"

    @property
    def title(self) -> str:
        """One line."""
        count = len(self.notices)
        about = self.notices[0].title if count == 1 else f"{count} things happened"
        return shown(f"{self.project} · {about}")

    @property
    def text(self) -> str:
        """What happened."""
        if len(self.notices) == 1:
            return shown(self.notices[0].text) or self.title
        lines = [shown(f"{n.title}: {n.text}") for n in self.notices[:LINES_CAP]]
        more = len(self.notices) - LINES_CAP
        return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])

    def plain(self) -> dict[str, Any]:
        """As a command reads it."""
        return {
            "v": VERSION,
            "project": self.project,
            "kind": self.kind,
            "title": self.title,
            "text": self.text,
            "notices": [
                {
                    "id": n.id,
                    "kind": n.kind,
                    "agent": n.agent,
                    "at": n.at,
                    "title": shown(n.title),
                    "text": shown(n.text),
                }
                for n in self.notices
            ],
        }


def shown(text: str) -> str:
    """One safe line."""
    return one_line(redact(for_display(engine.spoken(text))))[:TEXT_CAP]


def label(number: int, target: Notify) -> str:
    """What we call a target in tables and events; never its address."""
    name = f"${target.url_env}" if target.to == "url" else target.command.partition(" ")[0]
    return f"{number + 1}:{target.to} {name}".rstrip()


def deliver(target: Notify, message: Dispatch, environ: Mapping[str, str], cwd: str) -> str:
    """Send it: "" or why it did not get there."""
    secrets = [*secret_values(environ), *filter(None, [environ.get(target.url_env, "")])]
    try:
        why = SEND[target.to](target, message, environ, cwd)
    except Exception as fault:  # a library's fault is this message's failure, and no more
        why = f"{type(fault).__name__}: {fault}"
    return redact(shown(why), secrets) if why else ""


def _command(target: Notify, message: Dispatch, environ: Mapping[str, str], cwd: str) -> str:
    document = json.dumps(message.plain(), ensure_ascii=True) + "\n"
    return _run(["/bin/sh", "-c", target.command], document, environ, cwd)


def _desktop(_target: Notify, message: Dispatch, environ: Mapping[str, str], cwd: str) -> str:
    path = environ.get("PATH", os.defpath)
    if shutil.which("notify-send", path=path):
        # the body may hold markup, so ours is escaped; the title never does
        words = ["notify-send", "--app-name=fleet", "--", message.title, html.escape(message.text)]
        return _run(words, "", environ, cwd)
    if shutil.which("osascript", path=path):
        script = [word for line in APPLESCRIPT for word in ("-e", line)]
        return _run(["osascript", *script, message.title, message.text], "", environ, cwd)
    return "neither notify-send nor osascript is here: install one, or use a command or a url"


def _url(target: Notify, message: Dispatch, environ: Mapping[str, str], _cwd: str) -> str:
    address = environ.get(target.url_env, "")
    if not address:
        return f"the variable {target.url_env} is not set here: export it before `up`"
    try:
        import apprise
    except ImportError:
        return "the library apprise is not installed: `agents.py notify test` sets it up, or says how"
    service = apprise.Apprise()
    with _said_by("apprise") as said:
        if not service.add(address):
            wrong = f"the variable {target.url_env} holds no address that apprise understands"
            web = address.startswith(("http://", "https://"))
            return f"{wrong}: a plain webhook is json://HOST/PATH or jsons://HOST/PATH" if web else wrong
        fine = service.notify(
            title=message.title,
            body=message.text,
            body_format=apprise.NotifyFormat.TEXT,  # so that a service which reads markup gets it escaped
            notify_type=_level(message),
        )
        words = said.getvalue()
    return "" if fine else f"the service refused it: {words or 'it did not say why'}"


@contextlib.contextmanager
def _said_by(name: str) -> Iterator[io.StringIO]:
    """What a library complains of meanwhile, instead of saying it on our terminal."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger(name)
    kept, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = kept


def _level(message: Dispatch) -> str:
    """How apprise colours it."""
    kinds = {n.kind for n in message.notices}
    if kinds & {"fatal", "flapping", "stale", "degraded"}:
        return "failure"
    if kinds & {"asking", "held", "gate", "config", "drift"}:
        return "warning"
    return "success" if kinds & {"complete", "phase", "resumed"} else "info"


def _run(argv: Sequence[str], text: str, environ: Mapping[str, str], cwd: str) -> str:
    """A child with a time limit; its whole group goes with it."""
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as fault:
        return f"{argv[0]}: {fault.strerror or fault}"
    _at_work.add(child.pid)
    with child:
        try:
            said, _ = child.communicate(text.encode(), timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"it did not end within {TIMEOUT_S:.0f} s"
        finally:
            _end(child.pid)
    last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return "" if child.returncode == 0 else f"exit {child.returncode}: {last or 'it said nothing'}"


def end_children() -> None:
    """End whatever is still at work: we have to leave."""
    for pid in tuple(_at_work):
        _end(pid)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _at_work.discard(pid)


_at_work: set[int] = set()  # leaders of their groups
SEND = {"command": _command, "desktop": _desktop, "url": _url}
