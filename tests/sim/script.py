"""What a generated launch script would start, read from its text: enough to bring the right agent to life."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EXPORT = re.compile(r"^export AO_AGENT=(?:'([^']*)'|(\S+))$", re.MULTILINE)
_EXEC = re.compile(r"(?:^|\s|;)exec (?:sh -c )?'?([A-Za-z0-9_-]+)", re.MULTILINE)
_RESUME = re.compile(r"--resume '*([A-Za-z0-9_-]+)")
_PORT = re.compile(r"--port (\d+)")
_SESSION_ID = re.compile(r"--session-id '*([A-Za-z0-9-]+)")


@dataclass(frozen=True)
class Facts:
    """Who runs there, with what."""

    agent: str = ""
    program: str = ""
    kickoff: bool = False
    conversation: str = ""
    resumed: bool = False
    port: int = 0
    preamble: bool = False


def read_script(text: str) -> Facts:
    """The few facts of a launch script that a simulated agent needs."""
    name = _EXPORT.search(text)
    programs = _EXEC.findall(text)
    resume, fresh = _RESUME.search(text), _SESSION_ID.search(text)
    conversation, port = resume or fresh, _PORT.search(text)
    return Facts(
        agent=(name[1] or name[2]) if name else "",
        program=programs[-1] if programs else "",
        kickoff='"$_ao_kickoff"' in text or "/kickoff-" in text.rpartition("exec ")[2],
        conversation=conversation[1] if conversation else "",
        resumed=resume is not None,
        port=int(port[1]) if port else 0,
        preamble="trap _ao_start EXIT" in text,
    )
