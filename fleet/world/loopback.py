"""Talking to a server on this machine: never through a proxy, never for long, never with anybody else."""

from __future__ import annotations

from collections.abc import Callable

from fleet.core.record import dataclass

LOCAL = ("http://127.", "http://localhost", "http://[::1]")
CAP = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Status 0: the connection was refused, so nothing was said at all."""

    status: int
    body: bytes = b""
    json: bool = False


Ask = Callable[[str, str, bytes | None, float], Answer]


def ask(address: str, key: str, data: bytes | None, timeout: float) -> Answer:
    """GET, or POST when there is something to say. OSError when nobody knows whether it was heard.

    `key` is user and password with a colon between them, or nothing.
    """
    import base64
    import urllib.error
    import urllib.request  # slow to load, and most fleets have no server

    if not address.startswith(LOCAL):
        raise OSError(f"{address} is not on this machine")
    headers = {"content-type": "application/json"} if data is not None else {}
    if key:
        headers["authorization"] = "Basic " + base64.b64encode(key.encode()).decode()
    request = urllib.request.Request(address, data=data, headers=headers)  # noqa: S310  checked above
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as reply:
            return Answer(reply.status, reply.read(CAP), "json" in (reply.headers.get("content-type") or ""))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read(CAP))
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return Answer(0)
        raise
    except ValueError as error:  # half an answer, or none that could be read
        raise OSError(str(error)) from error


def free_port() -> int:
    """A port that nobody listens on now. Whoever wants it should take it soon."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
