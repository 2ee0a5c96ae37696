"""The agents.toml of a simulated fleet, as text: it is edited, garbled and shortened like a real one."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "sim-"
PROJECT_DIR = "/project"
CONFIG = "/project/agents.toml"
LOG_DIR = "/project/.fleet"
SERVICE = "cleaner"

HEAD = """\
[defaults]
session_prefix = "sim-"
log_dir = ".fleet"
backend = "clod"
watch = "heal+stall"

[watchdog]
signal_interval = {signal}
heavy_interval = {heavy}

[backend.clod]
bin = "clod"
process_name = "clod"
supports_resume = true
session_id_flag = "--session-id '{{id}}'"
queues_input = true
stall_idle = 300
{clod_screen}

[backend.opal]
bin = "opal"
prompt_delivery = "ping"
process_name = "opal"
submit_key = "C-m"
connect_delay = 8
stall_idle = 300
{opal_screen}

[backend.plain]
bin = "plain {{kickoff}}"
prompt_delivery = "exec"
stall_idle = 300
active_re = "esc to interrupt|retrying in"
limit_re = "hit your usage limit"
fatal_re = "^! FATAL"
"""

SCREEN = """
[backend.{name}.screen]
open = "^-{{20,}}$"
composer = "^> ?(?P<draft>.*)$"
close = "^-{{20,}}$"
user = "^» "
said = "^@ "
tool = "^\\\\$ "
output = "^  \\\\| "
notice = "^! "
status = "^\\\\* "
hint = "^  choose with"
option = "^[> ] \\\\d\\\\. "

[[backend.{name}.patterns]]
name = "spinner"
state = "working"
region = "status"
re = "esc to interrupt"

[[backend.{name}.patterns]]
name = "retry"
state = "retrying"
region = "status"
re = "retrying in"

[[backend.{name}.patterns]]
name = "limit"
state = "limited"
region = "live"
re = "^! You have hit your usage limit"

[[backend.{name}.patterns]]
name = "fatal"
state = "wedged"
region = "live"
re = "^! FATAL"

[[backend.{name}.patterns]]
name = "error"
state = "error"
region = "live"
re = "^! API Error"

[[backend.{name}.patterns]]
name = "login"
state = "auth"
region = "live"
re = "^! Please log in"

[[backend.{name}.patterns]]
name = "context"
state = "context"
region = "live"
re = "^! Context is full"

[[backend.{name}.patterns]]
name = "prompt"
state = "idle"
region = "composer"
re = "^>"

[[backend.{name}.dialogs]]
name = "trust"
re = "Do you trust this folder"
key = "1"

[[backend.{name}.dialogs]]
name = "permission"
re = "Allow this command"
fix = "answer it in its terminal"
"""


@dataclass(frozen=True)
class Declared:
    """One agent's table."""

    name: str
    backend: str = "clod"
    watch: str = "heal+stall"
    account: str = ""
    resume: bool = False
    wake: float = 0.0
    enabled: bool = True

    def text(self) -> str:
        """As it is written in the file."""
        lines = ["[[agent]]", f'name = "{self.name}"', 'kind = "persistent"', f'backend = "{self.backend}"']
        lines += [f'watch = "{self.watch}"', f'prompt = "Do the work of {self.name}."']
        if self.account:
            lines.append(f'account = "{self.account}"')
        if self.resume:
            lines.append("resume = true")
        if self.wake:
            lines.append(f'wake = {{ interval = {self.wake:.0f}, prompt_file = "wake.md" }}')
        if not self.enabled:
            lines.append("enabled = false")
        return "\n".join(lines) + "\n"


def toml(agents: list[Declared], *, signal: float = 30.0, heavy: float = 300.0, service: bool = True) -> str:
    """The whole file."""
    head = HEAD.format(
        signal=signal,
        heavy=heavy,
        clod_screen=SCREEN.format(name="clod"),
        opal_screen=SCREEN.format(name="opal"),
    )
    parts = [head, *(a.text() for a in agents)]
    if service:
        parts.append(f'[[service]]\nname = "{SERVICE}"\ncommand = "cleaner --follow"\n')
    return "\n".join(parts)
