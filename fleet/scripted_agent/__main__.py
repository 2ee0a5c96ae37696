"""The scripted agent: a real full-screen program in a real pane, that plays an agent from a script.

Started like an agent CLI, by path or as `python -m fleet.scripted_agent [flags] [KICKOFF]`, it shows a
composer, takes what is typed, works, talks, asks, runs into limits, commits, waits, hangs and dies as its
script says. It writes down everything it receives: a test compares what was sent with what arrived.

Environment: AO_SCRIPT the script (looked for here, in the project and in the directories above),
AO_SCRIPT_SPEED how many script seconds pass in a second, AO_SCRIPT_RECORD where to write what was received
(default: scripted/<session> under AO_LOG_DIR).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys

if __package__ in {None, ""}:  # run by path, with -I -S: make the package known, after the standard library
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

_UMASK = os.umask(0o077)  # for the bytecode that these imports write beside the engine
from fleet.scripted_agent.actions import Ended  # noqa: E402
from fleet.scripted_agent.outside import set_name  # noqa: E402
from fleet.scripted_agent.player import Agent  # noqa: E402
from fleet.scripted_agent.script import DEFAULT, ScriptError, load  # noqa: E402
from fleet.scripted_agent.terminal import Terminal  # noqa: E402

os.umask(_UMASK)

FLAGS = {  # the flags an agent CLI is given, and whether they take a value
    "--model": True, "--resume": True, "--session-id": True, "--settings": True, "--remote-control": True,
    "--script": True, "--face": True, "--continue": False, "--yolo": False,
}  # fmt: skip
_FLAG = re.compile(r"--?[A-Za-z][\w-]*(=.*)?")


def find_script(name: str) -> str:
    """Where the script is: here, in the project, or in a directory above."""
    path = os.path.expanduser(name)
    if os.path.isabs(path):
        return path
    folder = os.getcwd()
    places = [folder, os.environ.get("AO_PROJECT_DIR", folder)]
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        places.append(folder)
    found = (os.path.join(place, path) for place in places)
    return next((p for p in found if os.path.isfile(p)), path)


def parse_flags(argv: list[str]) -> tuple[dict[str, str], str]:
    """Flags by name, and the kickoff. An unknown flag ends the program as it would end a real CLI."""
    flags: dict[str, str] = {}
    words: list[str] = []
    left = list(argv)
    while left:
        word = left.pop(0)
        if word == "--":
            words += left
            break
        name, equals, value = word.partition("=")
        if name in FLAGS:
            follows = FLAGS[name] and not equals and left
            flags[name] = left.pop(0) if follows else value
        elif _FLAG.fullmatch(word):
            raise ScriptError(f"unknown option '{word}'")
        else:
            words.append(word)
    return flags, "\n".join(words)


def _record_dir() -> str:
    place = os.environ.get("AO_SCRIPT_RECORD", "")
    base, session = os.environ.get("AO_LOG_DIR", ""), os.environ.get("AO_SESSION", "")
    if not place and base and session:
        place = os.path.join(base, "scripted", session)
    if place:
        try:
            for folder in (os.path.dirname(place), place):  # whatever the umask: the mode is the last one's
                os.makedirs(folder, 0o700, exist_ok=True)
        except OSError:
            return ""
    return place


def main(argv: list[str]) -> int:
    """Play, and return the exit code."""
    try:
        flags, kickoff = parse_flags(argv)
        name = flags.get("--script") or os.environ.get("AO_SCRIPT", "")
        script = load(find_script(name)) if name else DEFAULT
        agent = Agent(script, flags, _record_dir())
    except (ScriptError, ValueError) as error:
        print(f"scripted-agent: {error}", file=sys.stderr)
        return 2
    set_name(script.name)
    signal.signal(signal.SIGWINCH, lambda *_: agent.resized())
    agent.terminal.open()
    try:
        agent.play(kickoff)
    except Ended as end:
        return _finish(end, agent.terminal)
    except OSError:
        return 1  # the terminal is gone
    finally:
        agent.terminal.close()


def _finish(end: Ended, terminal: Terminal) -> int:
    """End as the script says; the code to exit with, where that is still to be done."""
    if end.signum:  # a crash cleans nothing up
        with contextlib.suppress(OSError):  # not even needed for KILL, and not allowed
            signal.signal(end.signum, signal.SIG_DFL)
        os.kill(os.getpid(), end.signum)
        signal.pause()
    terminal.close()
    if end.argv:
        os.execvp(end.argv[0], end.argv)
    return end.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
