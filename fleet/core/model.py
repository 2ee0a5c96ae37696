"""What the user declared in agents.toml, after defaults, profiles and paths are resolved.

Everything here is frozen: a config edit makes a new Fleet, it never changes one.
Paths are absolute strings. Durations are seconds. Names are already allow-listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fleet.core.outline import WATCHDOG, Ground, Listed, Outline

Delivery = Literal["arg", "ping", "exec"]
MessageDelivery = Literal["keys", "server"]
Treat = Literal["blank-before", "blank-after", "when-idle", "refuse"]
TextWay = Literal["keys", "argument", "both"]
Kind = Literal["loop", "persistent", "task", "service"]
Watch = Literal["none", "heal", "heal+stall"]

# What a profile may name: parts of a screen, and the expressions that tell them apart. What stands behind
# each is in backends; tests hold the two together.
REGIONS = ("live", "notice", "status", "footer", "composer", "box", "dialog", "opening", "end")
LANDMARKS = (
    "aside", "bar", "close", "commands", "composer", "echo", "folded", "header", "hint", "inside", "margin",
    "notice", "open", "option", "output", "overlay", "placeholder", "queued", "said", "status", "summary",
    "tool", "user",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a screen profile: seeing `re` in `region` means the agent is in `state`."""

    name: str
    state: str  # a ScreenState value: working, idle, asking, limited, ...
    re: str
    region: str = "live"  # which part of the screen counts; the regions are defined by backends.screen
    unless: str = ""  # a second expression that, matching the same line, takes the verdict back
    fix: str = ""  # in one sentence, what a person must do: trying again will not help
    fixture: str = ""  # the capture that proves it
    version: str = ""  # the CLI release it was seen in


@dataclass(frozen=True, slots=True)
class TextRule:
    """One trait of how a CLI takes texts: what matches `re` is treated so. All that match count."""

    name: str
    re: str
    treat: Treat
    by: TextWay = "keys"
    why: str = ""  # in one sentence, for the sender
    version: str = ""


@dataclass(frozen=True, slots=True)
class Dialog:
    """A question the CLI may open. `key` is the one key we may press; empty means: report, never press."""

    name: str
    re: str
    key: str = ""
    fix: str = ""  # what the operator should do instead, in one sentence
    fixture: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Backend:
    """How to start, feed, read and leave one kind of agent CLI: all data, no code."""

    name: str
    bin: str
    flags: str = ""
    prompt_delivery: Delivery = "arg"
    prompt_mark: str = ""  # stands before a prompt that is an argument: what follows is no flag
    remote_control: bool = False
    supports_resume: bool = False
    process_name: str = ""  # empty opts out of backend-mismatch healing
    submit_key: str = "Enter"
    clear_keys: tuple[str, ...] = ()  # pressed once or more, they empty its composer
    stall_idle: float = 300.0
    active_re: str = ""
    limit_re: str = ""
    fatal_re: str = ""
    attach: str = ""
    server: str = ""
    footer_ui: bool = False
    log_grace: float = 0.0
    connect_delay: float = 12.0
    model_env: bool = False
    model_variable: str = ""  # for model_env: holds JSON settings, in which `model` is put
    preamble: str = ""
    resume_flag: str = "--resume '{id}'"
    model_flag: str = "--model '{model}'"
    remote_control_flag: str = "--remote-control '{session}'"
    session_id_flag: str = ""  # when set we choose the conversation id at a fresh start
    resume_refused_re: str = ""  # its last words when a conversation is not there, or is open elsewhere
    settings_flag: str = ""  # when set, a generated per-run settings file is passed ({file})
    notify_flag: str = ""  # when set, a program of ours is run after each turn ({notify}, a TOML array)
    port_flag: str = ""  # when set, each run's server gets a free port of the loopback ({port})
    server_key_env: str = ""  # the variable from which that server takes its password
    message_delivery: MessageDelivery = "keys"  # how words reach it once it runs
    env_pass: tuple[str, ...] = ()
    nested_env: tuple[str, ...] = ()  # by which it would take itself for a part of another one
    env: tuple[tuple[str, str], ...] = ()
    inherits: str = ""
    signals: tuple[str, ...] = ()  # structured sources, most trusted first
    queues_input: bool = False  # the CLI queues what is typed while it works
    transcript: str = ""  # which folder of backends/ has the reader of its records; empty: none
    start_grace: float = 30.0
    version: str = ""  # the CLI release the profile was proved against
    patterns: tuple[Pattern, ...] = ()
    dialogs: tuple[Dialog, ...] = ()
    texts: tuple[TextRule, ...] = ()
    screen: tuple[tuple[str, str], ...] = ()  # named regexes for the regions (composer, chrome, ...)

    @property
    def declares_idle(self) -> bool:
        """Only a profile that says what idle looks like can leave a screen unknown."""
        return any(p.state == "idle" for p in self.patterns)

    @property
    def declares_composer(self) -> bool:
        """Whether the profile says where typed text stands: then not to find it means something."""
        return any(name in {"composer", "inside"} for name, _ in self.screen)

    @property
    def folded(self) -> str:
        """What its composer shows in place of a long paste; empty when it shows the text itself."""
        return dict(self.screen).get("folded", "")


SCREENLESS = Backend(name="", bin="")  # of a service: nothing to read, nothing to type


@dataclass(frozen=True, slots=True)
class Wake:
    """A periodic nudge, typed from a file."""

    interval: float
    prompt_file: str


@dataclass(frozen=True, slots=True)
class Member:
    """An agent or a service, after inheritance: it has a session, and is started, watched and stopped.

    An agent is a CLI that is read and typed to. A service is a command without a screen, kept alive.
    """

    name: str
    session: str
    kind: Kind
    backend: str  # the name of a Backend in Fleet.backends; empty for a service
    dir: str
    watch: Watch
    command: str = ""  # the shell command of a service; empty for an agent
    model: str = ""
    role: str = ""
    resume: bool = True
    enabled: bool = True
    wake: Wake | None = None
    prompt: str = ""
    prompt_file: str = ""
    log_signature: str = ""
    account: str = ""
    resume_on_reset: bool = True
    env: tuple[tuple[str, str], ...] = ()
    env_pass: tuple[str, ...] = ()
    env_file: str = ""
    clone: str = ""
    model_pinned: bool = False  # the model was given for this invocation only, and beats the phase's

    @property
    def is_service(self) -> bool:
        """Is it a command, and not an agent?"""
        return self.kind == "service"

    @property
    def has_screen(self) -> bool:
        """Is there a screen to read and to type to?"""
        return self.kind != "service"

    @property
    def is_loop(self) -> bool:
        """Is it governed by the phase machine?"""
        return self.kind == "loop"

    @property
    def watched(self) -> bool:
        """Does the watchdog heal it at all?"""
        return self.watch != "none"

    @property
    def is_task(self) -> bool:
        """Does it run once, and is it done then?"""
        return self.kind == "task"


@dataclass(frozen=True, slots=True)
class Gate:
    """One check that a done phase must pass. Exactly one of run, clean, review, ratchet is set."""

    run: str = ""
    clean: bool = False
    review: str = ""
    ratchet: str = ""
    metric: str = ""
    timeout: float = 600.0


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of the loop: a plan to follow and a status file that says when it is done."""

    id: str
    plan: str  # as written; the template shows it verbatim
    status: str  # as written; looked up in handoff.repo/state_subdir, then in handoff.repo
    models: tuple[tuple[str, str], ...] = ()
    gates: tuple[Gate, ...] = ()


@dataclass(frozen=True, slots=True)
class Handoff:
    """Which commits and files of which repository wake which side."""

    repo: str
    claim_pings: tuple[str, ...] = ()
    review_pings: tuple[str, ...] = ()
    inboxes: tuple[str, ...] = ()
    claim_pattern: str = "^claim"
    review_pattern: str = "^review"
    state_subdir: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class OnComplete:
    """A task agent to run once the sequence is complete and its trigger file lies in log_dir."""

    trigger_file: str
    run: str


@dataclass(frozen=True, slots=True)
class Loop:
    """The phase machine that governs every agent of kind loop."""

    kickoff_template: str
    roles_dir: str
    phases: tuple[Phase, ...]
    handoff: Handoff
    state_file: str = "phase-idx"
    resume_phase: bool = True
    auto_advance: bool = True
    done_marker: str = "## DONE"
    done_nudge: bool = True
    on_complete: OnComplete | None = None


@dataclass(frozen=True, slots=True)
class WatchdogSpec:
    """The supervisor's own cadence."""

    signal_interval: float = 30.0
    heavy_interval: float = 300.0
    limit_probe_fallback: float = 300.0
    limit_reset_slack: float = 45.0
    stall_grace: float = 180.0
    log_tokens: bool = False
    notify_after: float = 300.0


# What [[notify]] can be told about. True: needs a person, so it is told where `on` does not choose.
NOTICES = {
    "fatal": True,
    "asking": True,
    "flapping": True,
    "held": True,
    "complete": True,
    "stale": True,
    "degraded": True,
    "config": True,
    "limited": False,
    "resumed": False,
    "phase": False,
    "gate": False,
    "drift": False,
}


@dataclass(frozen=True, slots=True)
class Notify:
    """One place to tell about transitions."""

    to: str  # "command", "desktop" or a service address read from the environment
    on: tuple[str, ...] = ()
    command: str = ""
    url_env: str = ""
    quiet: str = ""  # "22:00-07:00"
    after: float = 0.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, overriding the shipped table for one model."""

    model: str
    input: float
    output: float
    cache_write: float = 0.0
    cache_read: float = 0.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """The whole declaration."""

    config_path: str
    session_prefix: str
    log_dir: str
    tmux_socket: str
    project_id: str
    project_dir: str
    watchdog: WatchdogSpec = field(default_factory=WatchdogSpec)
    backends: tuple[Backend, ...] = ()
    members: tuple[Member, ...] = ()  # agents, then services: each has a session
    loop: Loop | None = None
    notify: tuple[Notify, ...] = ()
    prices: tuple[Price, ...] = ()
    warnings: tuple[str, ...] = ()  # file:line: key: text, for everything that is odd but not wrong
    # The two parts of `members`. They are kept, because they are read for every member at every tick.
    agents: tuple[Member, ...] = field(init=False, repr=False, compare=False)
    services: tuple[Member, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Part the members, and put them in their order."""
        agents = tuple(m for m in self.members if not m.is_service)
        services = tuple(m for m in self.members if m.is_service)
        object.__setattr__(self, "agents", agents)
        object.__setattr__(self, "services", services)
        object.__setattr__(self, "members", (*agents, *services))

    def member(self, name: str) -> Member | None:
        """The agent or service of that name, or nothing."""
        return next((m for m in self.members if m.name == name), None)

    def agent(self, name: str) -> Member | None:
        """The agent of that name, or nothing."""
        return next((a for a in self.agents if a.name == name), None)

    def backend_of(self, member: Member) -> Backend:
        """The backend a member declares; the loader has checked that it exists."""
        if member.is_service:
            return SCREENLESS
        for backend in self.backends:
            if backend.name == member.backend:
                return backend
        raise LookupError(f"{member.name} names no backend of this fleet: {member.backend}")

    @property
    def watchdog_session(self) -> str:
        """The session that runs the supervisor."""
        return f"{self.session_prefix}{WATCHDOG}"

    @property
    def ground(self) -> Ground:
        """Where it lives."""
        return Ground(self.config_path, self.session_prefix, self.log_dir, self.tmux_socket, self.project_id)

    @property
    def outline(self) -> Outline:
        """What showing it takes."""
        return Outline(
            ground=self.ground,
            watchdog_session=self.watchdog_session,
            signal_interval=self.watchdog.signal_interval,
            agents=tuple(map(_listed, self.agents)),
            services=tuple(map(_listed, self.services)),
            state_file=self.loop.state_file if self.loop else "",
            phases=tuple(p.id for p in self.loop.phases) if self.loop else (),
        )


def _listed(member: Member) -> Listed:
    m = member
    return Listed(m.name, m.session, m.kind, m.watch, m.enabled, m.role, m.backend, m.model)
