"""Whose a path is, and whose a listening port is."""

from __future__ import annotations

import os
import socket
import stat
import threading
from contextlib import contextmanager

import pytest

from fleet.core.seen import Posted
from fleet.host import http
from fleet.host.clock import RealClock
from fleet.host.http import Loopback, check_owner
from fleet.host.trust import Step, Way, distrust
from fleet.ports import Reply, Stranger
from fleet.supervisor.cli_servers import Letter, Mail
from tests.deadlines import patience

ME, OTHER, UNMAPPED = 1000, 1001, 65534
DIR, FILE = stat.S_IFDIR, stat.S_IFREG


def step(path: str, owner: int, mode: int, *, alone: bool = False) -> Step:
    return Step(path, owner, mode, above=stat.S_ISDIR(mode), group_of_one=alone)


ROOT = step("/", 0, DIR | 0o755)
HOME = step("/home", ME, DIR | 0o755)
MINE = step("/home/f", ME, FILE | 0o644)

WAYS = [
    ("mine, in mine", (ROOT, HOME, MINE), None),
    ("root's", (ROOT, step("/etc", 0, DIR | 0o755), step("/etc/f", 0, FILE | 0o644)), None),
    ("another's file", (ROOT, HOME, step("/home/f", OTHER, FILE | 0o600)), ("/home/f", Way.OWNER)),
    ("another's directory above", (ROOT, step("/home", OTHER, DIR | 0o755), MINE), ("/home", Way.OWNER)),
    ("writable by all", (ROOT, HOME, step("/home/f", ME, FILE | 0o666)), ("/home/f", Way.WRITE)),
    ("writable by a group", (ROOT, HOME, step("/home/f", ME, FILE | 0o664)), ("/home/f", Way.WRITE)),
    ("by a group of one", (ROOT, HOME, step("/home/f", ME, FILE | 0o664, alone=True)), None),
    ("by a group of one and all", (step("/f", ME, FILE | 0o666, alone=True),), ("/f", Way.WRITE)),
    ("a directory above for all", (ROOT, step("/home", ME, DIR | 0o777), MINE), ("/home", Way.WRITE)),
    ("a sticky directory above", (ROOT, step("/tmp", 0, DIR | 0o1777), MINE), None),
    ("a sticky directory itself", (Step("/tmp", 0, DIR | 0o1777, above=False),), ("/tmp", Way.WRITE)),
    ("root's, writable by all", (step("/f", 0, FILE | 0o646),), ("/f", Way.WRITE)),
    ("an unmapped owner above", (step("/", UNMAPPED, DIR | 0o755), HOME, MINE), None),
    ("an unmapped owner of the file", (ROOT, step("/f", UNMAPPED, FILE | 0o644)), ("/f", Way.OWNER)),
    ("the first fault is named", (step("/a", OTHER, DIR | 0o777), MINE), ("/a", Way.OWNER)),
]


@pytest.mark.parametrize(("steps", "expected"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
def test_who_reaches_a_path(steps, expected):
    found = distrust(steps, ME, UNMAPPED)
    assert (found and (found.path, found.reach)) == expected


def test_a_fault_names_owner_mode_and_the_command_quoted():
    found = distrust([step("/my files", OTHER, FILE | 0o640)], ME)
    assert found is not None
    assert "uid 1001" in str(found)
    assert "0640" in str(found)
    assert found.fix == "chown 1000 '/my files'"


@contextmanager
def server(reply: bytes, uid: int | None = None):
    """A listener that takes one request and answers; as another user if one is given. Yields its port."""
    ready, heard = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            listener = socket.create_server(("127.0.0.1", 0))
            os.write(ready[1], f"{listener.getsockname()[1]}\n".encode())
            listener.settimeout(20)
            peer, _ = listener.accept()
            peer.settimeout(20)
            os.write(heard[1], peer.recv(4096) or b"nothing")
            peer.sendall(reply)
            peer.close()
        finally:
            os._exit(0)
    port = int(os.read(ready[0], 20))

    def told() -> bytes:
        return os.read(heard[0], 4096)

    try:
        yield port, told
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        for fd in (*ready, *heard):
            os.close(fd)


OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


def test_our_own_server_gets_the_key():
    with server(OK) as (port, told):
        reply = Loopback().ask(f"http://127.0.0.1:{port}/x?y=1", "user:word", None, 5.0)
        assert reply == Reply(200, b"{}", json=True)
        said = told()
        assert said.startswith(b"GET /x?y=1 ")
        assert b"Authorization: Basic" in said.replace(b"authorization", b"Authorization")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a second user")
def test_another_users_server_is_sent_nothing():
    with server(OK, uid=65534) as (port, told):
        with pytest.raises(Stranger, match="uid 65534"):
            Loopback().ask(f"http://127.0.0.1:{port}/x", "user:word", b"{}", 5.0)
        assert told() == b"nothing"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a second user")
@pytest.mark.parametrize(("again", "outcome"), [(False, Posted.REFUSED), (True, Posted.UNSURE)])
def test_a_message_that_was_not_sent_to_a_stranger_is_refused(again, outcome):
    with server(OK, uid=65534) as (port, _told):
        mail = Mail(http.Loopback(), RealClock())
        place = f"http://127.0.0.1:{port}"
        mail.send(Letter("m1", f"{place}/send", b"{}", f"{place}/look", "u:p", again=again))
        for thread in threading.enumerate():
            if thread.name == "letter":
                thread.join(patience(10))
        assert dict(mail.outcomes(["m1"])) == {"m1": outcome}


def test_a_redirect_is_not_followed():
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"
    with server(moved) as (port, _told):
        assert Loopback().ask(f"http://127.0.0.1:{port}/", "u:p", None, 5.0).status == 302


@pytest.mark.parametrize(
    "address",
    ["http://localhost.example.org/", "http://127.0.0.1.example.org/", "http://127.example.org:80/",
     "https://127.0.0.1/", "http://10.0.0.1/", "http://[::2]/", "http://127.0.0.1:x/", "http:///x", "x"],
)  # fmt: skip
def test_only_this_machine_is_spoken_to(address):
    with pytest.raises(OSError, match="not on this machine"):
        Loopback().ask(address, "u:p", None, 1.0)


def test_the_owner_is_found_without_the_kernels_table_too(monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setattr(http, "_TABLES", ("/nowhere",))
    with server(OK) as (port, _told):
        check_owner(port)
    with pytest.raises(Stranger, match="cannot be found out"):
        check_owner(port)
