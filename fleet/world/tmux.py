"""One tmux server, spoken to by processes: never more than one process a call, however large the fleet.

Everything goes as a batch through `source-file -` on standard input: no length limit, no argument list for
others to read, and a line that fails does not stop the next. Verbs use this; the control-mode client of the
watchdog asks the same questions without any process at all.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from fleet.world import tmux_rows, tmux_text
from fleet.world.launch import base_env
from fleet.world.ports import Launch, Unavailable
from fleet.world.speaker import Batch, Lost, NoServer, Said, Speaker, nonce

OLDEST = (3, 2)  # argv panes, -e, brace blocks, -N
LINE_S = 0.02  # what each line of a batch adds to our patience: a long answer is not a hanging server

_NO_SERVER = r"no server running on |error connecting to .*\((?:No such file|Connection refused)"
_LOST = r"server exited unexpectedly|lost server"


class TmuxServer(Speaker):
    """The server at one socket, by short-lived processes. `socket_path`, once recorded, beats the name."""

    def __init__(
        self,
        socket: str,
        conf_dir: str,
        project_id: str,
        log_dir: str,
        *,
        socket_path: str = "",
        timeout: float = 5.0,
    ) -> None:
        super().__init__(project_id)
        self.conf_dir = conf_dir
        self.log_dir = log_dir
        self.timeout = timeout
        self._socket = socket
        self._socket_path = socket_path

    @property
    def _is_users(self) -> bool:
        """The server everybody on this account shares: its options are not ours to set."""
        return self._socket == "default"

    @property
    def state_dir(self) -> str:
        """Where every client stands, so that launch scripts are named without a path."""
        return os.path.join(self.log_dir, "state")

    @property
    def argv(self) -> list[str]:
        """How to reach this server: also the head of the command a person types to attach."""
        where = ["-S", self._socket_path] if self._socket_path else ["-L", self._socket]
        return ["tmux", *where, "-u"]

    @property
    def environment(self) -> dict[str, str]:
        """What the server is founded with: nothing of the caller's that a pane should not have."""
        where = {name: os.environ[name] for name in ("TMUX_TMPDIR", "TERM") if name in os.environ}
        return {**base_env(os.environ), **where}

    @cached_property
    def version(self) -> tuple[int, int]:
        return tmux_version()

    def patience(self, lines: Sequence[str]) -> float:
        """How many seconds the answer to a batch may take."""
        return self.timeout + LINE_S * len(lines)

    def ask(self, lines: Sequence[str]) -> Said:
        return self._run(["source-file", "-"], lines)

    def create(self, launches: Sequence[Launch]) -> dict[str, str]:
        """All sessions in one batch, founding the server if need be; read back what really is there."""
        if not launches:
            return {}
        self._prepare(launches)
        lines = [] if self._is_users else ["set-option -s exit-empty off"]
        lines += [self._create_line(launch) for launch in launches]
        lines.append("list-sessions -F '#{session_name}'")
        command = [*self._conf(), "start-server", ";", "source-file", "-"]
        try:
            said = self._run(command, lines)
        except (Lost, NoServer):  # the old server was leaving: this founds a new one
            said = self._run(command, lines)
        there = set((said.texts[-1] or "").split("\n"))
        complaint = said.complaint or "it did not say why"
        return {
            launch.session: _outcome(launch.session, done=text is not None, there=there, complaint=complaint)
            for launch, text in zip(launches, said.texts[-1 - len(launches) : -1], strict=True)
        }

    def retire(self) -> None:
        """Leave nothing behind: the anchor goes, and a server of ours ends once its last session has.

        The server decides that itself, so a session created meanwhile keeps it; `create` takes it back.
        """
        anchor = tmux_text.exact(tmux_rows.anchor(self.project_id))
        with suppress(NoServer):
            self.ask(
                (f"kill-session -t {anchor}", *(() if self._is_users else ("set-option -s exit-empty on",)))
            )

    def close(self) -> None:
        """Nothing is held between calls."""

    def _create_line(self, launch: Launch) -> str:
        folder, script = os.path.split(launch.script)
        if os.path.realpath(folder) != os.path.realpath(self.state_dir):
            raise tmux_text.Refused(f"{launch.script}: launch scripts lie in {self.state_dir}")
        log = os.path.join(self.log_dir, "logs", launch.log)
        return tmux_text.create(
            launch.session, script, run=launch.run, log=log, project=self.project_id, env=launch.env
        )

    def _prepare(self, launches: Sequence[Launch]) -> None:
        """Directories, our tmux configuration, and log files born 0600: `cat` would use the umask."""
        logs = os.path.join(self.log_dir, "logs")
        for folder in {self.log_dir, self.state_dir, logs, self.conf_dir}:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        if self._socket_path:
            os.makedirs(os.path.dirname(self._socket_path), mode=0o700, exist_ok=True)
        for launch in launches:
            path = os.path.join(logs, launch.log)
            os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, 0o600))

    def _conf(self) -> list[str]:
        """Our own configuration, except on the user's own server, which reads the user's."""
        if self._is_users:
            return []
        path = os.path.join(self.conf_dir, "tmux.conf")
        temporary = f"{path}.{nonce()}"
        fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(tmux_text.SERVER_CONF)
        os.replace(temporary, path)
        return ["-f", path]

    def _run(self, command: Sequence[str], lines: Sequence[str]) -> Said:
        batch = Batch(lines)
        argv = [*self.argv, *command]
        patience = self.patience(lines)
        try:
            done = subprocess.run(
                argv,
                input=batch.program.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=patience,
                check=False,
                env=self.environment,
                cwd=self.state_dir if os.path.isdir(self.state_dir) else "/",
            )
        except FileNotFoundError:
            raise Unavailable("tmux is not installed: install tmux 3.2 or newer and try again") from None
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"tmux did not answer within {patience:g} s ({' '.join(self.argv)}); "
                "it may be stopped or overloaded, and what was asked may still happen"
            ) from None
        except OSError as error:
            raise Unavailable(f"tmux could not be run: {error.strerror}; trying again") from None
        complaint = done.stderr.decode("utf-8", "replace").strip()
        texts = batch.read(done.stdout.decode("utf-8", "replace"))
        if texts is not None:
            return Said(texts, complaint)
        if re.search(_NO_SERVER, complaint):
            raise NoServer(f"no tmux server listens there: {complaint}")
        if re.search(_LOST, complaint):
            raise Lost(f"the tmux server ended while it was asked: {complaint}; looking again")
        _ = self.version  # one that is too old says so, instead
        if complaint and not done.stdout:
            raise Unavailable(f"tmux did not do as asked: {complaint}")
        raise Unavailable(f"tmux gave half an answer: {complaint or 'no reason given'}; trying again")


def _outcome(session: str, *, done: bool, there: set[str], complaint: str) -> str:
    if done:
        return "" if session in there else "it ended while it was being created"
    taken = f"duplicate session: {session}" in complaint.split("\n")
    return "exists" if taken else f"tmux refused: {complaint}"


def tmux_version() -> tuple[int, int]:
    """Major and minor of the installed tmux; Unavailable when there is none or it is too old to be used."""
    try:
        done = subprocess.run(["tmux", "-V"], capture_output=True, text=True, timeout=5.0, check=False)
    except FileNotFoundError:
        raise Unavailable("tmux is not installed: install tmux 3.2 or newer and try again") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"tmux -V did not answer: {error}; install tmux 3.2 or newer") from None
    return parse_version(done.stdout)


def parse_version(text: str) -> tuple[int, int]:
    """`tmux 3.3a`, `tmux next-3.6`; a development build without a number counts as the newest."""
    found = re.search(r"(\d+)\.(\d+)", text)
    version = (int(found[1]), int(found[2])) if found else (99, 0)
    if version < OLDEST:
        raise Unavailable(f"{text.strip()} is too old: install tmux 3.2 or newer")
    return version


def resolve_socket(socket: str) -> str:
    """The absolute path tmux itself would use for `-L socket` in this environment."""
    root = os.environ.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108 - tmux's own rule, in its own 0700 directory
    return os.path.join(os.path.realpath(root), f"tmux-{os.getuid()}", socket)


def rotate(path: str, cap: int, keep: int = 3) -> bool:
    """Copy and truncate a log that outgrew `cap`: the pane's `cat` goes on appending to the same file."""
    try:
        if os.path.getsize(path) <= cap:
            return False
        for n in range(keep - 1, 0, -1):
            if os.path.exists(f"{path}.{n}"):
                os.replace(f"{path}.{n}", f"{path}.{n + 1}")
        with open(path, "rb") as source, open(f"{path}.1", "wb", opener=_private) as copy:
            while chunk := source.read(1 << 20):
                copy.write(chunk)
        os.truncate(path, 0)
    except FileNotFoundError:
        return False
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
