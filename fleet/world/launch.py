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

from fleet.core.foreign import as_object
from fleet.core.model import AgentSpec, Backend, Fleet, ServiceSpec
from fleet.ports import Disk
from fleet.world import descriptors
from fleet.world.clone import clone_command
from fleet.world.env import BASE_NAMES, NAME, pick, unwanted
from fleet.world.shell import fill, quote

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
    passed += [a.env_pass for a in fleet.agents] + [s.env_pass for s in fleet.services]
    passed += [(n.url_env,) for n in fleet.notify if n.url_env]
    return pick(environ, (*BASE_NAMES, *(name for names in passed for name in names)))


def agent_env(agent: AgentSpec, backend: Backend, environ: Mapping[str, str]) -> dict[str, str]:
    """One agent's share of an environment."""
    return pick(environ, (*BASE_NAMES, *backend.env_pass, *agent.env_pass))


def service_env(service: ServiceSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """One service's share of an environment."""
    return pick(environ, (*BASE_NAMES, *service.env_pass))


def compose(
    fleet: Fleet,
    agent: AgentSpec,
    backend: Backend,
    *,
    run: str,
    model: str,
    kickoff_file: str,
    kickoff_bytes: int,
    points: bool = False,
    resume_id: str = "",
    session_id: str = "",
    settings_file: str = "",
    signals_dir: str = "",
    held: Collection[str],
    notify: str = "",
    port: int = 0,
    key_file: str = "",
    server_names: frozenset[str],
) -> str:
    """The launch script of one agent."""
    slots = {
        "bin": backend.bin,
        "server": backend.server,
        "dir": agent.dir,
        "kickoff": kickoff_file,
        "session": agent.session,
        "model": model,
        "id": resume_id or session_id,
        "file": settings_file,
        "port": str(port or ""),
        "notify": notify,
    }
    flags = _flags(backend, slots, resumes=bool(resume_id))
    if backend.prompt_delivery == "exec":
        command = f"exec sh -c {quote(' '.join(filter(None, (fill(backend.bin, slots), backend.flags))))}"
    elif backend.prompt_delivery == "ping" and backend.attach:
        command = " ".join(filter(None, ("exec", fill(backend.attach, slots), backend.flags)))
    else:
        said = backend.prompt_delivery == "arg"
        kickoff = _kickoff(kickoff_file, kickoff_bytes, points=points) if said else ""
        mark = quote(backend.prompt_mark) if backend.prompt_mark and kickoff else ""
        argument = '"$_ao_kickoff"' if kickoff else ""
        command = " ".join(filter(None, (f"{kickoff}exec", quote(backend.bin), *flags, mark, argument)))
    env = {**dict(backend.env), **_model_env(backend, agent, model)}
    return _script(
        fleet,
        name=agent.name,
        session=agent.session,
        run=run,
        env=env,
        own_env=dict(agent.env),
        env_file=agent.env_file,
        held=held,
        passed=(*backend.env_pass, *agent.env_pass),
        directory=agent.dir,
        clone=_clone(fleet, agent),
        preamble=backend.preamble,
        signals_dir=signals_dir,
        server_names=server_names,
        command=command,
        key=(backend.server_key_env, key_file) if key_file else None,
    )


def _clone(fleet: Fleet, agent: AgentSpec) -> str:
    """`up` clones before it starts anybody; a start without it makes the clone here, where nobody waits."""
    if not agent.clone:
        return ""
    command = " ".join(quote(word) for word in clone_command(fleet, agent))
    return f"[ -e {quote(agent.dir)} ] || {command} || exit 72"


def compose_service(
    fleet: Fleet, service: ServiceSpec, *, run: str, held: Collection[str], server_names: frozenset[str]
) -> str:
    """The launch script of a service: its command is the user's shell."""
    return _script(
        fleet,
        name=service.name,
        session=service.session,
        run=run,
        env={},
        own_env=dict(service.env),
        env_file=service.env_file,
        held=held,
        passed=service.env_pass,
        directory=service.dir,
        server_names=server_names,
        command=f"exec sh -c {quote(service.command)}",
    )


def compose_watchdog(
    fleet: Fleet, *, run: str, argv: Sequence[str], held: Collection[str], server_names: frozenset[str]
) -> str:
    """The launch script of the supervisor: it keeps the whole union, because it starts everybody else."""
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


def preflight(disk: Disk, fleet: Fleet, agent: AgentSpec, environ: Mapping[str, str]) -> str:
    """Why this agent can never start as the machine is now, with the fix; "" when it may."""
    backend = fleet.backend_of(agent)
    if not disk.is_dir(agent.dir) and (not agent.clone or _is_there(disk, agent.dir)):
        return f"agent {agent.name}: dir {agent.dir} is not a directory: create it, or correct `dir`"
    if agent.env_file and not disk.may_read(agent.env_file):
        return f"agent {agent.name}: env_file {agent.env_file} cannot be read: create it or remove the key"
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
        f"agent {agent.name}: {word!r} (bin of backend {backend.name}) is not an executable on PATH: "
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


def _kickoff(path: str, size: int, *, points: bool) -> str:
    """Reads the prompt inside the shell, to the last newline; a pointer to one that cannot be an argument."""
    if not size:
        return ""
    if points or size > ARGUMENT_CAP:
        return f"_ao_kickoff={quote(pointer(path))}; "
    return f"_ao_kickoff=$(cat {quote(path)} && echo .); _ao_kickoff=${{_ao_kickoff%.}}; "


def pointer(path: str) -> str:
    """What is said instead of a kickoff that is too long to be said."""
    return f"Read {path} and follow it."


def _model_env(backend: Backend, agent: AgentSpec, model: str) -> dict[str, str]:
    """The model inside the JSON settings that a variable of the CLI holds."""
    variable = backend.model_variable
    if not (backend.model_env and variable and model):
        return {}
    own = {**dict(backend.env), **dict(agent.env)}.get(variable, "")
    return {variable: json.dumps({**as_object(own), "model": model})}


def _exports(env: Mapping[str, str]) -> list[str]:
    return [f"export {name}={quote(value)}" for name, value in env.items() if NAME.fullmatch(name)]
