"""The agents.toml of a simulated fleet, as text: it is edited, garbled and shortened like a real one."""

from __future__ import annotations

from dataclasses import dataclass

from tests.sim.names import GATES, PHASES, status_of

PREFIX = "sim-"
PROJECT_DIR = "/project"
CONFIG = "/project/agents.toml"
LOG_DIR = "/project/.fleet"
SERVICE = "cleaner"
WATCHDOG_SESSION = f"{PREFIX}watchdog"

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

# backends with another source than the screen
REPORTING = (
    ("hook", '"hooks", "registry"'),
    ("scribe", '"transcript"'),
    ("codec", '"rollout", "notify"'),
    ("envoy", '"server"'),
)
OWN_CHOICE = {  # how those are started that choose the id of their conversation themselves
    "codec": 'notify_flag = "-c notify={notify}"',
    "envoy": (
        'prompt_delivery = "ping"\nport_flag = "--port {port}"\nserver_key_env = "ENVOY_KEY"\n'
        'message_delivery = "server"\npreamble = "ulimit -c 0"'
    ),
}
OURS = """session_id_flag = "--session-id '{id}'\""""
REPORTS = """
[backend.{name}]
bin = "{name}"
process_name = "{name}"
supports_resume = true
{how}
queues_input = true
signals = [{source}]
stall_idle = 300
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
region = "{region}"
re = "^{gutter}! You have hit your usage limit"

[[backend.{name}.patterns]]
name = "fatal"
state = "wedged"
region = "{region}"
re = "^{gutter}! FATAL"

[[backend.{name}.patterns]]
name = "error"
state = "error"
region = "{region}"
re = "^{gutter}! API Error"

[[backend.{name}.patterns]]
name = "login"
state = "auth"
region = "{region}"
re = "^{gutter}! Please log in"

[[backend.{name}.patterns]]
name = "context"
state = "context"
region = "{region}"
re = "^{gutter}! Context is full"

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
name = "limit-menu"
re = "What do you want to do.*Stop and wait"
key = "Escape"

[[backend.{name}.dialogs]]
name = "permission"
re = "Allow this command"
fix = "answer it in its terminal"
"""


LOOP = """
[loop]
kickoff_template = "prompts/kickoff.md"
roles_dir = "prompts"

[loop.handoff]
repo = "repo"
claim_pings = "adversary"
review_pings = "builder"
inboxes = ["TO-ADVERSARY.md", "TO-BUILDER.md"]

[loop.on_complete]
trigger_file = "CLEANUP"
run = "closer"

"""


def programs_of(agent: str) -> str:
    """The directory with an agent's own programs, the first one on its PATH."""
    return f"/opt/{agent}/bin"


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
    kind: str = "persistent"
    role: str = ""

    def text(self) -> str:
        """As it is written in the file."""
        lines = ["[[agent]]", f'name = "{self.name}"', f'kind = "{self.kind}"', f'backend = "{self.backend}"']
        task = f'role = "{self.role}"' if self.role else f'prompt = "Do the work of {self.name}."'
        lines += [f'watch = "{self.watch}"', task]
        if self.account:
            lines.append(f'account = "{self.account}"')
        lines.append(f"resume = {str(self.resume).lower()}")
        if self.wake:
            lines.append(f'wake = {{ interval = {self.wake:.0f}, prompt_file = "wake.md" }}')
        lines.append(f'env = {{ PATH = "{programs_of(self.name)}:/bin" }}')
        if not self.enabled:
            lines.append("enabled = false")
        return "\n".join(lines) + "\n"


def toml(agents: list[Declared], *, signal: float = 30.0, heavy: float = 300.0, service: bool = True) -> str:
    """The whole file."""
    head = HEAD.format(
        signal=signal,
        heavy=heavy,
        clod_screen=screen("clod"),
        opal_screen=screen("opal"),
    )
    used = {a.backend for a in agents}
    hooks = [
        REPORTS.format(name=n, source=s, how=OWN_CHOICE.get(n, OURS)) + screen(n, reports=True)
        for n, s in REPORTING
        if n in used
    ]
    parts = [head, *hooks, *(a.text() for a in agents)]
    if service:
        parts.append(f'[[service]]\nname = "{SERVICE}"\ncommand = "cleaner --follow"\n')
    if any(a.kind == "loop" for a in agents):
        parts.append(LOOP + "".join(map(_phase, PHASES)))
    return "\n".join(parts)


def screen(name: str, *, reports: bool = False) -> str:
    """How its screen is read. Words that a CLI reports are read as its notices, behind its own glyph."""
    gutter = "(?:[⎿●■] )?" if reports else ""
    return SCREEN.format(name=name, region="notice" if reports else "live", gutter=gutter)


def _phase(name: str) -> str:
    gates = ", ".join(GATES[name])
    return (
        f'[[loop.phases]]\nid = "{name}"\nplan = "plans/{name}.md"\nstatus = "{status_of(name)}"\n'
        f"gates = [{gates}]\n"
    )
