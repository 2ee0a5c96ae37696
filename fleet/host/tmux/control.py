"""The same verbs through one long-lived control-mode client: no process at all in a steady tick.

The client sits in a session of its own, the anchor, whose name keeps it out of listings. It asks for no
output and has no say in window sizes. When we leave we end the anchor ourselves; one left by a killed
watchdog is taken over by the next. (`destroy-unattached` would end it for us, and on tmux 3.3a takes the
whole server down in one of six departures of a control client.)
Every answer stands between `%begin` and an `%end` or `%error` with the same tag; whatever stands outside
is a notification, and only wakes the loop. A batch that is not answered in whole closes the connection:
a late answer must never be taken for the answer to a later question. The next batch connects anew, and
while that does not work the plain server is asked by processes.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from fleet.core.decision import Result
from fleet.host.clock import RealClock
from fleet.host.procfs import RUN_VARIABLE
from fleet.host.tmux import language, pane_rows
from fleet.host.tmux.client import TmuxServer
from fleet.host.tmux.speaker import Batch, Said, Speaker
from fleet.ports import Clock, Launch, Unavailable

IN_FLIGHT = 256  # lines per round: enough to hide the latency, few enough to keep both buffers small
_RETRY_AFTER = 1.0
_CHUNK = 1 << 16
_STIRRING = (b"%sessions-changed", b"%unlinked-window-", b"%window-close", b"%session-renamed")


class _Broken(Exception):
    """The connection is of no use any more."""


class _Late(_Broken):
    """It did not answer in time; neither would another one."""


class ControlTmux(Speaker):
    """The Tmux port of the watchdog. `fileno` and `drain` let its selector wake on notifications."""

    def __init__(self, server: TmuxServer, clock: Clock | None = None) -> None:
        super().__init__(server.project_id)
        self._clock = clock or RealClock()
        self._server = server
        self._anchor = pane_rows.anchor(server.project_id)
        self._client: subprocess.Popen[bytes] | None = None
        self._reader = _Reader()
        self._retry_at = 0.0

    @property
    def version(self) -> tuple[int, int]:
        return self._server.version

    @property
    def connected(self) -> bool:
        """Whether the control client is in use; otherwise processes are."""
        return self._client is not None

    def fileno(self) -> int:
        """What to poll for notifications; -1 while there is no connection."""
        return self._client.stdout.fileno() if self._client and self._client.stdout else -1

    def drain(self) -> bool:
        """Take in what tmux said unasked: True when sessions came or went, or the connection ended."""
        with suppress(_Broken):
            while self._client is not None and self._ready(select.POLLIN, 0.0):
                self._receive()
            if self._client is None or self._client.poll() is None:
                return self._reader.take_stir()
        self._drop()
        return True

    def ask(self, lines: Sequence[str]) -> Said:
        try:
            return self._ask(lines)
        except _Broken as broken:
            raise Unavailable(f"tmux's control client did not answer: {broken}; connecting anew") from None

    def look(self, lines: Sequence[str]) -> Said:
        """A question may be asked twice: a connection that ends in the middle of it costs no tick."""
        try:
            return self._ask(lines)
        except _Late as late:
            raise Unavailable(f"tmux's control client did not answer: {late}; connecting anew") from None
        except _Broken:
            return self._server.ask(lines)

    def create(self, launches: Sequence[Launch]) -> dict[str, Result]:
        """By a process: it is rare, and it must be able to found a server."""
        made = self._server.create(launches)
        self._retry_at = 0.0
        return made

    def close(self) -> None:
        """Leave, and take the anchor along."""
        if self._client is not None:
            with suppress(_Broken):
                self._send(memoryview(f"kill-session -t {language.exact(self._anchor)}\n".encode()))
                while self._ready(select.POLLIN, 0.5):
                    self._receive()  # ends when tmux sends us away
        self._drop()

    def _drop(self) -> None:
        client, self._client = self._client, None
        self._reader = _Reader()
        if client is None:
            return
        for pipe in (client.stdin, client.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()
        client.kill()  # it may hang with its server
        client.wait()

    def _ask(self, lines: Sequence[str]) -> Said:
        self.drain()
        if not self._connect():
            return self._server.ask(lines)
        rounds = [lines[at : at + IN_FLIGHT] for at in range(0, len(lines), IN_FLIGHT)]
        try:
            answers = [self._converse(some) for some in rounds or [()]]
        except _Broken:
            self._drop()
            raise
        texts = tuple(text for said in answers for text in said.texts)
        return Said(texts, answers[-1].server, "\n".join(a.complaint for a in answers if a.complaint))

    def _connect(self) -> bool:
        if self._client is not None:
            return True
        if self._clock.mono() < self._retry_at:
            return False
        self._retry_at = self._clock.mono() + _RETRY_AFTER
        server = self._server
        quiet = ["-f", "no-output,ignore-size"]
        marked = ["-e", f"{RUN_VARIABLE}={self._anchor}"]  # so that the process in it is known as ours
        argv = [*server.argv, "-N", "-C", "new-session", "-A", *quiet, "-s", self._anchor, *marked, "cat"]
        try:
            self._client = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=server.environment,
                cwd=server.state_dir if os.path.isdir(server.state_dir) else "/",
                start_new_session=True,
            )
            os.set_blocking(self._pipe_in(), False)
            os.set_blocking(self.fileno(), False)
            self._await_welcome()
            self._converse(())
        except (_Broken, OSError):
            self._drop()
        return self.connected

    def _await_welcome(self) -> None:
        """The answer to new-session: a line sent before it may run outside of any session."""
        deadline = self._clock.mono() + self._server.timeout
        while not self._reader.blocks:
            left = deadline - self._clock.mono()
            if left <= 0 or not self._ready(select.POLLIN, left):
                raise _Broken("it did not attach in time")
            self._receive()

    def _converse(self, lines: Sequence[str]) -> Said:
        batch = Batch(lines)
        unsent = memoryview(batch.program.encode("utf-8", "surrogateescape"))
        self._reader.begin()
        patience = self._server.patience(lines)
        deadline = self._clock.mono() + patience
        while not any(map(batch.is_last, self._reader.answered[-1:])):
            left = deadline - self._clock.mono()
            if left <= 0:
                raise _Late(f"no whole answer within {patience:g} s")
            wanted = select.POLLIN | (select.POLLOUT if unsent else 0)
            ready = self._ready(wanted, left)
            if ready & select.POLLOUT and unsent:
                unsent = unsent[self._send(unsent[:_CHUNK]) :]
            if ready & ~select.POLLOUT:
                self._receive()
        said = batch.read("".join(self._reader.answered), "".join(self._reader.complaints).strip())
        assert said is not None, "its last marker was read"
        return said

    def _ready(self, wanted: int, seconds: float) -> int:
        """Which of reading and writing would not block; POLLIN also when the client is gone."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        if wanted & select.POLLOUT:
            poll.register(self._pipe_in(), select.POLLOUT)
        ready = 0
        for fd, event in poll.poll(seconds * 1000):
            ready |= select.POLLOUT if fd == self._pipe_in() and event & select.POLLOUT else select.POLLIN
        return ready

    def _send(self, data: memoryview) -> int:
        try:
            return os.write(self._pipe_in(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _Broken(f"it went away: {error.strerror}") from None

    def _receive(self) -> None:
        try:
            data = os.read(self.fileno(), _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise _Broken(f"it went away: {error.strerror}") from None
        if not data:
            raise _Broken("it went away")
        self._reader.feed(data)
        if self._reader.left:
            raise _Broken("tmux sent it away")

    def _pipe_in(self) -> int:
        if self._client is None or self._client.stdin is None:
            raise _Broken("it is not there")
        return self._client.stdin.fileno()


class _Reader:
    """The control protocol: answers in blocks, notifications in lines between them."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0  # what stands before is read
        self._tag = b""  # of the block we are in
        self._stirred = False
        self.answered: list[str] = []
        self.complaints: list[str] = []
        self.blocks = 0
        self.left = False

    def begin(self) -> None:
        """A new batch: what was answered before is not part of it."""
        self.answered = []
        self.complaints = []

    def take_stir(self) -> bool:
        stirred, self._stirred = self._stirred, False
        return stirred

    def feed(self, data: bytes) -> None:
        self._data += data
        while self._block() if self._tag else self._line():
            pass
        self._data, self._at = self._data[self._at :], 0

    def _line(self) -> bool:
        """Read a line between blocks; False when there is no whole one."""
        end = self._data.find(b"\n", self._at)
        if end < 0:
            return False
        line, self._at = self._data[self._at : end], end + 1
        word, _, tag = line.partition(b" ")
        if word == b"%begin":
            self._tag = tag
        elif word == b"%exit":
            self.left = True
        elif line.startswith(_STIRRING):
            self._stirred = True
        return True

    def _block(self) -> bool:
        """Read a block as a whole, however many lines it has; False when its end has not come."""
        closing = b" " + self._tag + b"\n"
        found = self._data.find(closing, self._at)
        while found >= 0:
            line = max(self._at, self._data.rfind(b"\n", self._at, found) + 1)
            word = self._data[line:found]
            if word in {b"%end", b"%error"}:
                text = self._data[self._at : line].decode("utf-8", "replace")
                (self.answered if word == b"%end" else self.complaints).append(text)
                self._at, self._tag = found + len(closing), b""
                self.blocks += 1
                return True
            found = self._data.find(closing, found + 1)
        return False
