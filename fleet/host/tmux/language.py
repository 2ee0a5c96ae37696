"""What we say to tmux, as text for its own command parser; never as arguments of a process.

Only three kinds of word get in: constants of this file, names from an allow-list, and data inside
`quote`. Targets are exact (`=name:`, or a pane id under a guard), formats are constants, and whatever
touches a pane is wrapped in a guard that the server itself evaluates in the same breath: between our
look and our act a pane may die, be reused or enter copy mode, and on tmux before 3.4 a paste into a
dead pane takes the whole server down.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from fleet.core.seen import PaneRef
from fleet.host.tmux.dialects import EITHER_PID, PANE_PID, Complaint, complaint_of

WIDTH, HEIGHT = 200, 50

# The whole configuration of a server of ours. The user's own file is not read: one line in it
# (destroy-unattached, a syntax error) can kill every detached session at birth.
SERVER_CONF = """\
set-option -s exit-empty off
set-option -s escape-time 0
set-option -s default-terminal tmux-256color
set-option -s set-clipboard off
set-option -g destroy-unattached off
set-option -g default-size 200x50
set-option -g default-shell /bin/sh
set-option -g history-limit 5000
set-option -g update-environment ''
set-option -g mouse on
set-option -g set-titles off
set-option -g status-left-length 40
set-option -g status-right '%H:%M'
set-option -g visual-activity off
set-option -g monitor-bell off
set-option -gw remain-on-exit on
set-option -gw automatic-rename off
set-option -gw allow-rename off
"""

LOG_MAX = 8 << 20  # where the system stops the writer of a log, however seldom the watchdog looks
# POSIX counts in blocks of 512 bytes; the signal that ends the writer would leave a core
_LOG = f"ulimit -c 0; ulimit -f {LOG_MAX // 512}; exec cat >>#{{@ao_log}}"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_PANE = r"%[0-9]{1,9}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_GIVEN = rf'(?ms)^(?P<name>{_VARIABLE})="(?P<value>(?:[^"\\]|\\.)*)"; export (?P=name);$'
_KEY = (
    r"(?:[CMS]-)*"
    r"(?:[!-~]|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|IC|DC"
    r"|PPage|NPage|PageUp|PageDown|F(?:[1-9]|1[0-2]))"
)
_SPECIAL = re.compile(r"['\x01-\x1f\x7f]")  # what single quotes cannot hold on one line
# C0 but tab and newline, DEL, C1: a keystroke of ours must never be more than text.
_UNTYPABLE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"


class Refused(ValueError):
    """A word that must not reach tmux. Names are checked when the config is read: this is the last check."""


def quote(text: str) -> str:
    """One word of tmux's command language that means exactly `text`, on one line."""
    if "\0" in text:
        raise Refused("a NUL byte cannot be passed to tmux")
    words = _SPECIAL.sub(lambda m: "'\"'\"'" if m[0] == "'" else f"'\"\\{ord(m[0]):03o}\"'", text)
    return f"'{words}'"


def name(text: str) -> str:
    """A session name or a run id, or Refused."""
    if not _NAME.fullmatch(text):
        raise Refused(f"{text!r} cannot name a session: use letters, digits, - and _, at most 96")
    return text


def exact(session: str) -> str:
    """The only way to address a session: tmux matches anything less by prefix."""
    return f"={name(session)}:"


def pane(text: str) -> str:
    """A pane id, or Refused."""
    if not re.fullmatch(_PANE, text):
        raise Refused(f"{text!r} is not a tmux pane id")
    return text


def key(text: str) -> str:
    """A key that send-keys knows, quoted; an unknown name would be typed letter by letter."""
    if not re.fullmatch(_KEY, text):
        raise Refused(f"{text!r} is not a key name that tmux knows, such as Enter, C-m or Escape")
    return quote(text)


def typable(text: str) -> str:
    """The text without what a paste cannot carry: control characters would be keystrokes.

    A byte that is not UTF-8 is shown as the letter that stands for such: tmux would drop the whole line.
    """
    text = re.sub(_UNTYPABLE, "", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def create(session: str, script: str, *, run: str, log: str, project: str, env: Mapping[str, str]) -> str:
    """One line, so that a taken name drops the rest of it and nothing is stamped that is not ours.

    The server runs the whole line before it reads a byte from the new pane: the log misses nothing.
    The log's path is data in an option, expanded once by a constant command. What a list asks for at every
    look is stamped on the pane: tmux looks for an option there first, and for its own words last.
    The script is named by its whole path: where a server stands may have been swept away.
    """
    at = exact(session)
    if not script.startswith("/") or not _NAME.fullmatch(script.rpartition("/")[2].removesuffix(".sh")):
        raise Refused(f"{script!r} is not the path of a launch script")
    variables = " ".join(f"-e {quote(f'{_variable(k)}={v}')}" for k, v in {**env, "AO_RUN_ID": run}.items())
    return " ; ".join(
        (
            f"new-session -d -s {name(session)} -x {WIDTH} -y {HEIGHT} {variables} sh {quote(script)}",
            f"set-option -p -t {at} @ao_run {name(run)}",
            f"set-option -p -t {at} @ao_project {name(project)}",
            f"set-option -p -F -t {at} @ao_created '#{{session_created}}'",
            f"set-option -p -F -t {at} @ao_pid '{PANE_PID}'",
            f"set-option -t {at} @ao_log {quote(shlex.quote(log))}",
            f"set-option -t {at} destroy-unattached off",
            f"set-option -w -t {at} remain-on-exit on",
            f"set-option -w -t {at} automatic-rename off",
            log_again(session),
        )
    )


def log_again(session: str) -> str:
    """Write what the session prints to its log, in place of the writer it has."""
    return f"pipe-pane -t {exact(session)} '{_LOG}'"


def capture(pane_id: str, back: int = 0) -> str:
    """The visible screen, wrapped lines joined, and some lines that have scrolled off it."""
    above = f" -S -{back}" if back else ""
    return f"capture-pane -p -J{above} -t {pane(pane_id)}"


def screen(session: str) -> str:
    """The visible screen as it looks: colours kept, lines as they are broken."""
    return f"capture-pane -p -e -t {exact(session)}"


def stranger(session: str) -> str:
    """Which process a session holds, and where a fleet lets it write."""
    return f"list-panes -t {exact(session)} -F '#{{pane_dead}}|#{{pane_pid}}|#{{@ao_log}}'"


def given(session: str) -> str:
    """What a session gives to its panes, as a shell would read it: values may hold anything."""
    return f"show-environment -s -t {exact(session)}"


def variables(text: str) -> dict[str, str]:
    """The answer to `given`; what tmux could not show as it is is left out."""
    found = {
        m["name"]: re.sub(r"\\(.)", r"\1", m["value"], flags=re.DOTALL) for m in re.finditer(_GIVEN, text)
    }
    return {name: value for name, value in found.items() if "\ufffd" not in value}


def kill(ref: PaneRef) -> str:
    """End the session, if that pane of that run is still in it."""
    return _guarded(ref, [f"kill-session -t {exact(ref.session)}"])


def paste(ref: PaneRef, text: str, buffer: str, flags: str) -> tuple[str, str, str]:
    """The text in a buffer of its own, the guarded paste, and the end of the buffer whatever became of that.

    Bracketed if the program asked for it (-p), and a line feed stays one (-r): as a carriage return it
    would submit the first line.
    """
    fill = f"set-buffer -b {name(buffer)} -- {quote(text)}"
    act = f"paste-buffer -p -r {flags} -b {buffer} -t {pane(ref.pane)}"
    return fill, _guarded(ref, [act], typing=True), f"delete-buffer -b {buffer}"


def press(ref: PaneRef, keys: Sequence[str]) -> str:
    """Named keys, under the guard."""
    words = " ".join(key(k) for k in keys)
    return _guarded(ref, [f"send-keys -t {pane(ref.pane)} -- {words}"], typing=True)


def reason(answer: str | None, ref: PaneRef, complaint: str) -> str:
    """What a guarded act reported: "" when it acted, else the first thing that was not as expected.

    An act that tmux itself refused has no answer, or an empty one: the guard had let it pass.
    """
    word, _, rest = (answer or "").strip().partition(" ")
    if word == _ACTED:
        return ""
    if word != _HELD:
        kind = complaint_of(complaint)
        if kind in {Complaint.EXITED, Complaint.NO_PANE}:
            return str(kind)
        return f"tmux refused: {complaint or 'it did not say why'}"
    found = dict(zip(_WITNESSES, rest.split("|"), strict=False))
    expected = _expected(ref)
    return next((why for field, why in _REASONS if found.get(field) != expected[field]), "it is held")


_ACTED, _HELD = "acted", "held"
# What a guard looks at, and how it is asked for.
_WITNESSES = {
    "pid": "#{pid}",
    "start_time": "#{start_time}",
    "pane_id": "#{pane_id}",
    "pane_pid": EITHER_PID,
    "@ao_run": "#{@ao_run}",
    "pane_dead": "#{pane_dead}",
    "pane_in_mode": "#{pane_in_mode}",
    "session_name": "#{session_name}",
}
# What is reported when one of them is not as expected: the first that differs.
_REASONS = (
    ("pid", "another server"),
    ("start_time", "another server"),
    ("pane_id", Complaint.NO_PANE.value),
    ("pane_pid", "another run"),
    ("@ao_run", "another run"),
    ("session_name", "the session was renamed"),
    ("pane_dead", Complaint.EXITED.value),
    ("pane_in_mode", "pane is in copy mode"),
)
_TYPING = ("pane_dead", "pane_in_mode")


def _expected(ref: PaneRef) -> dict[str, str]:
    return {
        "pid": str(ref.server.pid),
        "start_time": str(ref.server.started),
        "pane_id": pane(ref.pane),
        "pane_pid": str(ref.pid or ""),
        "@ao_run": name(ref.run),
        "session_name": name(ref.session),
        "pane_dead": "0",
        "pane_in_mode": "0",
    }


def _guarded(ref: PaneRef, acts: Iterable[str], *, typing: bool = False) -> str:
    condition = "1"
    for field, value in _expected(ref).items():
        if typing or field not in _TYPING:
            condition = f"#{{&&:#{{==:{_WITNESSES[field]},{value}}},{condition}}}"
    then = " ; ".join([*acts, f"display-message -p {_ACTED}"])
    other = f"display-message -p -t {ref.pane} '{_HELD} {'|'.join(_WITNESSES.values())}'"
    return f"if-shell -F -t {ref.pane} '{condition}' {{ {then} }} {{ {other} }}"


def _variable(text: str) -> str:
    if not re.fullmatch(_VARIABLE, text):
        raise Refused(f"{text!r} cannot name an environment variable")
    return text
