"""The script a pane runs: what it may see, where it stands, what it becomes.

A person can read it and run it by hand. Every value is quoted; no secret is in it: those come with the
pane's environment, from which the script removes what is not this agent's, or from an env_file, which is
read as KEY=VALUE data and never executed. The preamble is the user's own shell. It may fail, exit or not
even parse: the agent still starts, because the start hangs on the shell's exit trap, and the failure is
shown in the pane and kept in a file. In the end the script becomes the agent: the pane's pid is its pid.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from fleet.core.model import Backend, Fleet, Member
from fleet.host import descriptors
from fleet.host.clone import clone_command
from fleet.host.env import BASE_NAMES, NAME, pick, unwanted
from fleet.host.shell import fill, quote
from fleet.ports import Disk
from fleet.text import as_object

ENGINE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARGUMENT_CAP = 120_000  # Linux refuses a single argument of 131,072 bytes

_PLAIN = r"[A-Za-z0-9_@%+=:,./-]+"

_READ_ENV_FILE = """\
_ao_cr=$(printf '\\r')
if [ -r {file} ]; then
  while IFS= read -r _ao_line || [ -n "$_ao_line" ]; do
    _ao_line=${{_ao_line%"$_ao_cr"}}
    _ao_line=${{_ao_line#export }}
    _ao_key=${{_ao_line%%=*}}
    case $_ao_line in '#'*) continue ;; *=*) ;; *) continue ;; esac
    case $_ao_key in '' | [0-9]* | *[!A-Za-z0-9_]*) continue ;; esac
    _ao_value=${{_ao_line#*=}}
    case $_ao_value in
      \\"*\\") _ao_value=${{_ao_value#\\"}} _ao_value=${{_ao_value%\\"}} ;;
      \\'*\\') _ao_value=${{_ao_value#\\'}} _ao_value=${{_ao_value%\\'}} ;;
    esac
    export "$_ao_key=$_ao_value"
  done < {file}
else
  printf 'env_file %s cannot be read: starting without it\\n' {file} >&2
fi"""


# Who watches the watchdog: a shell, which nothing that ends a Python ends. What ended in order stays down.
_KEEP_RUNNING = """\
_ao_pause=5
until {command}; do
  printf 'the watchdog ended with %s; it is started again in %s s\\n' "$?" "$_ao_pause" >&2
  sleep "$_ao_pause"
  [ "$_ao_pause" -ge 60 ] || _ao_pause=$((_ao_pause * 2))
done"""


def server_env(fleet: Fleet, environ: Mapping[str, str]) -> dict[str, str]:
    """The union of what the members of the fleet may see: what the watchdog holds and hands out."""
    passed = [b.env_pass for b in fleet.backends]
    passed += [member.env_pass for member in fleet.members]
    passed += [(n.url_env,) for n in fleet.notify if n.url_env]
    return pick(environ, (*BASE_NAMES, *(name for names in passed for name in names)))


def env_of(fleet: Fleet, member: Member, environ: Mapping[str, str]) -> dict[str, str]:
    """One member's share of an environment: a pane is given its own and no other's."""
    return pick(environ, (*BASE_NAMES, *fleet.backend_of(member).env_pass, *member.env_pass))


class Kit(NamedTuple):
    """What one start of an agent is given beside its declaration. A service is given nothing."""

    model: str = ""
    kickoff_file: str = ""
    kickoff_bytes: int = 0
    points: bool = False  # the kickoff cannot be an argument: the agent is told where it stands
    resume_id: str = ""  # the conversation that goes on
    session_id: str = ""  # or the one that begins, where we choose its id
    settings_file: str = ""
    signals_dir: str = ""
    notify: str = ""  # the program that the CLI runs after each turn
    port: int = 0  # of its own server
    key_file: str = ""  # and the file of that server's password


def compose(
    fleet: Fleet,
    member: Member,
    kit: Kit,
    *,
    run: str,
    held: Collection[str],
    server_names: frozenset[str],
) -> str:
    """The launch script of one agent or service."""
    backend = fleet.backend_of(member)
    return _script(
        fleet,
        name=member.name,
        session=member.session,
        run=run,
        env={**dict(backend.env), **_model_env(backend, member, kit.model)},
        own_env=dict(member.env),
        env_file=member.env_file,
        held=held,
        passed=(*backend.env_pass, *member.env_pass),
        directory=member.dir,
        clone=_clone(fleet, member),
        preamble=backend.preamble,
        signals_dir=kit.signals_dir,
        server_names=server_names,
        command=_agent_command(member, backend, kit) if member.has_screen else _shell(member.command),
        key=(backend.server_key_env, kit.key_file) if kit.key_file else None,
    )


def _agent_command(agent: Member, backend: Backend, kit: Kit) -> str:
    """The line by which the script becomes the CLI."""
    slots = {
        "bin": backend.bin,
        "server": backend.server,
        "dir": agent.dir,
        "kickoff": kit.kickoff_file,
        "session": agent.session,
        "model": kit.model,
        "id": kit.resume_id or kit.session_id,
        "file": kit.settings_file,
        "port": str(kit.port or ""),
        "notify": kit.notify,
    }
    if backend.prompt_delivery == "exec":
        return _shell(" ".join(filter(None, (fill(backend.bin, slots), backend.flags))))
    if backend.prompt_delivery == "ping" and backend.attach:
        return " ".join(filter(None, ("exec", fill(backend.attach, slots), backend.flags)))
    flags = _flags(backend, slots, resumes=bool(kit.resume_id))
    kickoff = _kickoff(kit) if backend.prompt_delivery == "arg" else ""
    mark = quote(backend.prompt_mark) if backend.prompt_mark and kickoff else ""
    argument = '"$_ao_kickoff"' if kickoff else ""
    return " ".join(filter(None, (f"{kickoff}exec", quote(backend.bin), *flags, mark, argument)))


def _shell(command: str) -> str:
    """The line by which the script becomes the user's own shell command."""
    return f"exec sh -c {quote(command)}"


def _clone(fleet: Fleet, agent: Member) -> str:
    """`up` clones before it starts an agent; a start without `up` makes the clone here, inside the pane."""
    if not agent.clone:
        return ""
    command = " ".join(quote(word) for word in clone_command(fleet, agent))
    return f"[ -e {quote(agent.dir)} ] || {command} || exit 72"


def compose_watchdog(
    fleet: Fleet, *, run: str, argv: Sequence[str], held: Collection[str], server_names: frozenset[str]
) -> str:
    """The launch script of the supervisor: it keeps the whole union, because it starts all agents."""
    return _script(
        fleet,
        name="watchdog",
        session=fleet.watchdog_session,
        run=run,
        env={},
        own_env={},
        env_file="",
        held=held,
        passed=(),
        directory=fleet.project_dir,
        server_names=server_names,
        command=_KEEP_RUNNING.format(command=" ".join(quote(word) for word in argv)),
    )


def preflight(disk: Disk, fleet: Fleet, agent: Member, environ: Mapping[str, str]) -> str:
    """Why this agent can never start as the machine is now, with the fix; "" when it may."""
    backend = fleet.backend_of(agent)
    if not disk.is_dir(agent.dir) and (not agent.clone or _is_there(disk, agent.dir)):
        return f"dir {agent.dir} is not a directory: create it, or correct `dir`"
    if agent.env_file and not disk.may_read(agent.env_file):
        return f"env_file {agent.env_file} cannot be read: create it or remove the key"
    if backend.preamble or agent.env_file:
        return ""  # either may change PATH: only the start itself can tell
    word = backend.bin
    if backend.prompt_delivery == "exec" and not re.fullmatch(_PLAIN, word):
        return ""  # a whole shell command
    if backend.prompt_delivery == "ping" and backend.attach and "{bin}" not in backend.attach:
        return ""
    path = {**environ, **dict(backend.env), **dict(agent.env)}.get("PATH", os.defpath)
    where = os.path.join(agent.dir, word) if "/" in word else word
    if word and not word.startswith("-") and disk.program(where, path):
        return ""
    return (
        f"{word!r} (bin of backend {backend.name}) is not an executable on PATH: "
        "install it, or give its full path as `bin`"
    )


def _is_there(disk: Disk, path: str) -> bool:
    """What cannot be looked at is for the clone to find out."""
    try:
        return disk.stat(path) is not None
    except OSError:
        return False


def _script(
    fleet: Fleet,
    *,
    name: str,
    session: str,
    run: str,
    env: Mapping[str, str],
    own_env: Mapping[str, str],
    env_file: str,
    held: Collection[str],
    passed: Iterable[str],
    directory: str,
    server_names: frozenset[str],
    command: str,
    clone: str = "",
    preamble: str = "",
    signals_dir: str = "",
    key: tuple[str, str] | None = None,
) -> str:
    ours = {
        "AO_RUN_ID": run,
        "AO_AGENT": name,
        "AO_PROJECT": fleet.project_id,
        "AO_SESSION": session,
        "AO_SIGNALS": signals_dir,
        "AO_PROJECT_DIR": fleet.project_dir,
        "AO_LOG_DIR": fleet.log_dir,
        "AO_ENGINE": ENGINE,  # for backends that are part of the engine, and hooks that call it
        "AO_PYTHON": sys.executable,
    }
    given = {*env, *own_env}
    nested = {name for backend in fleet.backends for name in backend.nested_env}
    hidden = sorted(n for n in unwanted(server_names, held, passed, nested) if n not in given)
    parts = [
        "#!/bin/sh",
        f"# {name}: written anew at each start. To run it by hand: sh {quote(f'launch-{session}.sh')}",
        f"unset {' '.join(hidden)}",
        descriptors.restore(),
        *_exports(env),
        *([_READ_ENV_FILE.format(file=quote(env_file))] if env_file else []),
        *_exports({**own_env, **ours}),
        *([f'export {key[0]}="$(cat {quote(key[1])})"'] if key else []),
        *([clone] if clone else []),
        f"cd {quote(directory)} || exit 72",  # sh says why, in the pane
        *(_with_preamble(preamble, command, os.path.join(fleet.log_dir, "state", f"preamble-{session}"))
          if preamble else [command]),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _with_preamble(preamble: str, command: str, record: str) -> list[str]:
    """The user's shell, then the agent, whatever became of the former."""
    return [
        "_ao_start() {",
        "  _ao_code=$?",
        "  trap - EXIT HUP INT TERM",
        "  set +eu",
        f'  printf "%s %s\\n" "$AO_RUN_ID" "$_ao_code" 2>/dev/null >{quote(record)}',
        '  [ "$_ao_code" -eq 0 ] || printf \'the preamble failed with code %s\\n\' "$_ao_code" >&2',
        f"  {command}",
        "}",
        "trap 'trap - EXIT; exit 143' HUP INT TERM",
        "trap _ao_start EXIT",
        f"eval {quote(chr(10) + preamble)}",
        "exit $?",
    ]


def _flags(backend: Backend, slots: Mapping[str, str], *, resumes: bool) -> list[str]:
    templates = (
        (backend.model_flag, bool(slots["model"]) and not backend.model_env),
        (backend.resume_flag, resumes),
        (backend.session_id_flag, bool(slots["id"]) and not resumes),
        (backend.settings_flag, bool(slots["file"])),
        (backend.notify_flag, bool(slots["notify"])),
        (backend.port_flag, bool(slots["port"])),
        (backend.remote_control_flag, backend.remote_control),
    )
    chosen = [fill(template, slots) for template, wanted in templates if template and wanted]
    return [backend.flags, *chosen] if backend.flags else chosen


def _kickoff(kit: Kit) -> str:
    """Reads the prompt inside the shell, to the last newline; a pointer to one that cannot be an argument."""
    path = kit.kickoff_file
    if not kit.kickoff_bytes:
        return ""
    if kit.points or kit.kickoff_bytes > ARGUMENT_CAP:
        return f"_ao_kickoff={quote(pointer(path))}; "
    return f"_ao_kickoff=$(cat {quote(path)} && echo .); _ao_kickoff=${{_ao_kickoff%.}}; "


def pointer(path: str) -> str:
    """What is said instead of a kickoff that is too long to be said."""
    return f"Read {path} and follow it."


def _model_env(backend: Backend, agent: Member, model: str) -> dict[str, str]:
    """The model inside the JSON settings that a variable of the CLI holds."""
    variable = backend.model_variable
    if not (backend.model_env and variable and model):
        return {}
    own = {**dict(backend.env), **dict(agent.env)}.get(variable, "")
    return {variable: json.dumps({**as_object(own), "model": model})}


def _exports(env: Mapping[str, str]) -> list[str]:
    return [f"export {name}={quote(value)}" for name, value in env.items() if NAME.fullmatch(name)]
