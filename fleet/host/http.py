"""Talking to a server on this machine: never through a proxy, never for long, never with another user's.

The port of a server is no secret, and any user of this machine can listen on it first. So the listener's
owner is looked up after the connection stands and before a byte is sent: a server of another user gets
neither the key nor the words. A redirect is an answer like any other; it is not followed.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator

from fleet.ports import Reply, Stranger

CAP = 1 << 20
ROOT = 0
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


class Loopback:
    """The Http port."""

    def ask(self, address: str, key: str, data: bytes | None, timeout: float) -> Reply:
        import http.client  # slow to load, and most fleets have no server

        host, port, path = _place(address)
        headers = {"content-type": "application/json"} if data is not None else {}
        if key:
            headers["authorization"] = "Basic " + base64.b64encode(key.encode()).decode()
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            connection.connect()
            check_owner(port)
            connection.request("GET" if data is None else "POST", path, data, headers)
            reply = connection.getresponse()
            kind = reply.headers.get("content-type") or ""
            return Reply(reply.status, reply.read(CAP), "json" in kind)
        except ConnectionRefusedError:
            return Reply(0)
        except (ValueError, http.client.HTTPException) as error:  # half an answer, or none that could be read
            raise OSError(f"{address}: {error!r}") from error
        finally:
            connection.close()

    def beside(self, name: str, job: Callable[[], None]) -> None:
        """In a thread that ends with the process."""
        threading.Thread(target=job, daemon=True, name=name).start()

    def free_port(self) -> int:
        """Free now: another process may take it until the caller does."""
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])


def _place(address: str) -> tuple[str, int, str]:
    """Host, port and path of an address of this machine; OSError for every other."""
    import ipaddress
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        local = parts.scheme == "http" and ipaddress.ip_address(host).is_loopback
        port = parts.port or 80
    except ValueError:
        local = False
    if not local:
        raise OSError(f"{address} is not on this machine")
    return host, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def check_owner(port: int) -> None:
    """Stranger unless the listener on this port belongs to us or to root."""
    owners = set(_owners(port))
    if foreign := owners - {ROOT, os.geteuid()}:
        raise Stranger(f"port {port} is held by another user (uid {min(foreign)})")
    if not owners:
        raise Stranger(f"it cannot be found out who listens on port {port}")


def _owners(port: int) -> Iterator[int]:
    """The users that listen on a port of this machine, whatever the address."""
    if not os.path.exists(_TABLES[0]):
        yield from _owners_by_process(port)
        return
    for path in _TABLES:
        try:
            with open(path, encoding="ascii") as table:
                rows = [line.split() for line in table.readlines()[1:]]
        except OSError:
            continue  # a kernel without that family
        for row in rows:
            if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port:
                yield int(row[7])


def _owners_by_process(port: int) -> Iterator[int]:
    """The same where the kernel has no such table: only our own processes may be asked, which is enough."""
    import psutil

    for process in psutil.process_iter():
        try:
            ends = process.net_connections(kind="tcp")
            if any(end.status == psutil.CONN_LISTEN and end.laddr.port == port for end in ends):
                yield process.uids().effective
        except (psutil.Error, OSError):
            continue
