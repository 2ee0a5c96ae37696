"""One tmux server, spoken to by processes: never more than one process per call, however large the fleet.

Everything goes as a batch through `source-file -` on standard input: no length limit, no argument list for
others to read, and a line that fails does not stop the next. Verbs use this; the control-mode client of the
watchdog asks the same questions without any process at all.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from fleet import umask
from fleet.core.decision import Result
from fleet.core.words import Outcome
from fleet.host import descriptors, packages
from fleet.host.env import base_env
from fleet.host.pane_logs import begin
from fleet.host.tmux import language, pane_rows
from fleet.host.tmux.dialects import Complaint, complaint_of, is_taken, parse_version
from fleet.host.tmux.speaker import Batch, Lost, NoServer, Said, Silent, Speaker, nonce
from fleet.host.trust import untrusted
from fleet.ports import Launch, Unavailable

LINE_S = 0.02  # what each line of a batch adds to our patience: a long answer is not a hanging server


class TmuxServer(Speaker):
    """The server at one socket, by short-lived processes. `socket_path`, once recorded, beats the name."""

    def __init__(
        self,
        socket: str,
        project_id: str,
        log_dir: str,
        *,
        socket_path: str = "",
        timeout: float = 5.0,
    ) -> None:
        super().__init__(project_id)
        self.log_dir = log_dir
        self.timeout = timeout
        self._socket = socket
        self._socket_path = socket_path

    @property
    def path(self) -> str:
        """Where its socket is."""
        return self._socket_path or resolve_socket(self._socket)

    @property
    def is_users(self) -> bool:
        """The user's own server, shared with other programs: its options are not ours to set."""
        return self._socket == "default"

    @property
    def state_dir(self) -> str:
        """Where launch scripts and our tmux.conf lie; the working directory of every client."""
        return os.path.join(self.log_dir, "state")

    @property
    def argv(self) -> list[str]:
        """How to reach this server. Unavailable where another user could have put one in its place."""
        if not self._socket_path:
            return ["tmux", "-L", self._socket, "-u"]
        check_socket(self._socket_path)
        return ["tmux", "-S", self._socket_path, "-u"]

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

    def create(self, launches: Sequence[Launch]) -> dict[str, Result]:
        """All sessions in one batch, founding the server if need be; read back what really is there."""
        if not launches:
            return {}
        self._prepare(launches)
        descriptors.widen()  # a server that this founds inherits it
        lines = [] if self.is_users else ["set-option -s exit-empty off"]
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
        anchor = language.exact(pane_rows.anchor(self.project_id))
        with suppress(NoServer):
            self.ask(
                (f"kill-session -t {anchor}", *(() if self.is_users else ("set-option -s exit-empty on",)))
            )

    def close(self) -> None:
        """Nothing is held between calls."""

    def _create_line(self, launch: Launch) -> str:
        if os.path.realpath(os.path.dirname(launch.script)) != os.path.realpath(self.state_dir):
            raise language.Refused(f"{launch.script}: launch scripts lie in {self.state_dir}")
        log = os.path.join(self.log_dir, "logs", launch.log)
        return language.create(
            launch.session, launch.script, run=launch.run, log=log, project=self.project_id, env=launch.env
        )

    def _prepare(self, launches: Sequence[Launch]) -> None:
        """Directories, and log files."""
        logs = os.path.join(self.log_dir, "logs")
        for folder in (self.log_dir, self.state_dir, logs):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        if self._socket_path:
            os.makedirs(os.path.dirname(self._socket_path), mode=0o700, exist_ok=True)
        for launch in launches:
            begin(os.path.join(logs, launch.log))

    def _conf(self) -> list[str]:
        """Our own configuration, except on the user's own server, which reads the user's."""
        if self.is_users:
            return []
        path = os.path.join(self.state_dir, "tmux.conf")
        temporary = f"{path}.{nonce()}"
        fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(language.SERVER_CONF)
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
                umask=umask.operators,  # a server that this founds hands it on to the panes
            )
        except FileNotFoundError:
            raise not_installed() from None
        except subprocess.TimeoutExpired:
            way_out = "" if self.is_users else "; `agents.py down` ends it with the whole fleet"
            raise Silent(
                f"tmux did not answer within {patience:g} s ({' '.join(self.argv)}); "
                f"it may be stopped or overloaded, and what was asked may still happen{way_out}"
            ) from None
        except OSError as error:
            raise Unavailable(f"tmux could not be run: {error.strerror}; trying again") from None
        complaint = done.stderr.decode("utf-8", "replace").strip()
        said = batch.read(done.stdout.decode("utf-8", "replace"), complaint)
        if said is not None:
            return said
        kind = complaint_of(complaint)
        if kind is Complaint.NO_SERVER:
            raise NoServer(f"no tmux server listens there: {complaint}")
        if kind is Complaint.LOST:
            raise Lost(f"the tmux server ended while it was asked: {complaint}; looking again")
        _ = self.version  # one that is too old says so, instead
        if complaint and not done.stdout:
            raise Unavailable(f"tmux did not do as asked: {complaint}")
        raise Unavailable(f"tmux gave half an answer: {complaint or 'no reason given'}; trying again")


def _outcome(session: str, *, done: bool, there: set[str], complaint: str) -> Result:
    if done and session in there:
        return Result(Outcome.DONE)
    if done:
        return Result(Outcome.REFUSED, "it ended while it was being created")
    if is_taken(session, complaint):
        return Result(Outcome.EXISTS)
    return Result(Outcome.REFUSED, f"tmux refused: {complaint}")


def not_installed() -> Unavailable:
    """What to say where there is no tmux: the one line that installs all that is missing."""
    return Unavailable(f"tmux is not installed; {packages.advice(packages.TMUX)}")


def require_tmux() -> None:
    """Before anything is made that only a fleet needs."""
    if not packages.has(packages.TMUX):
        raise not_installed()


def tmux_version() -> tuple[int, int]:
    """Major and minor of the installed tmux; Unavailable when there is none or it is too old to be used."""
    try:
        done = subprocess.run(["tmux", "-V"], capture_output=True, text=True, timeout=5.0, check=False)
    except FileNotFoundError:
        raise not_installed() from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"tmux -V did not answer: {error}; install tmux 3.2 or newer") from None
    return parse_version(done.stdout)


def resolve_socket(socket: str) -> str:
    """The absolute path tmux itself would use for `-L socket` in this environment."""
    root = os.environ.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108 - tmux's own rule, in its own 0700 directory
    return os.path.join(os.path.realpath(root), f"tmux-{os.getuid()}", socket)


def check_socket(path: str) -> None:
    """What tmux checks for a socket it finds by name, for one that we name by its path: is it ours alone?

    Unavailable if another user can put a server of theirs there. A directory that is gone holds no server.
    """
    folder = os.path.dirname(path)
    fault = untrusted(folder)
    if fault is not None:
        raise Unavailable(f"the tmux socket is not used: {fault}: {fault.fix}")
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        if mode & 0o077:
            raise Unavailable(f"the tmux socket is not used: {folder} is {mode:04o}: chmod 700 {folder}")
