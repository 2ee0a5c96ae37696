"""Every key of agents.toml, in the order of the reference.

A key's default is that of its field in core/model, and a field without one is a required key. A key says
`default` here only where the model's value is worked out from it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from fleet.backends.profiles import folders
from fleet.backends.sources import SCREEN, adapters
from fleet.config import schema as s
from fleet.config.schema import IN_MODEL, REQUIRED, Key, Type
from fleet.core import model
from fleet.core.model import LANDMARKS, NOTICES, REGIONS
from fleet.core.seen import ScreenState

WATCH = ("none", "heal", "heal+stall")

_BACKEND_TEXT = (
    "How to start, feed and read one agent CLI. A table with the name of a shipped profile changes that "
    "profile key by key; any other name stands alone unless it inherits. Lists replace the inherited list, "
    "env and screen are merged by key, patterns, dialogs and texts by name."
)

SECTIONS: dict[str, tuple[str, str]] = {
    "watchdog": ("[watchdog]", "How often the watchdog ticks and checks."),
    "defaults": ("[defaults]", "The project, and what every agent inherits unless it says otherwise."),
    "agent": ("[[agent]]", "One block an agent."),
    "agent.wake": ("[agent.wake]", "A message that is typed into the agent's session at an interval."),
    "service": ("[[service]]", "A command that is no agent, kept running in a session."),
    "loop": ("[loop]", "The phase machine that drives every agent of kind loop."),
    "loop.phases": ("[[loop.phases]]", "One step of the sequence, in the order of work."),
    "loop.phases.gates": (
        "[[loop.phases.gates]]",
        "A check that a done phase must pass. Exactly one of run, clean, review, ratchet.",
    ),
    "loop.handoff": ("[loop.handoff]", "Which commits and files of which repository wake which side."),
    "loop.on_complete": ("[loop.on_complete]", "A task agent that runs when the sequence is complete."),
    "backend": ("[backend.NAME]", _BACKEND_TEXT),
    "backend.patterns": ("[[backend.NAME.patterns]]", "One thing the screen may show, and what it means."),
    "backend.dialogs": ("[[backend.NAME.dialogs]]", "A question that the CLI may open."),
    "backend.texts": ("[[backend.NAME.texts]]", "A trait of how the CLI takes texts; all that match count."),
    "notify": ("[[notify]]", "One place that gets messages about changes of state."),
    "price": ('[price."MODEL"]', "US dollars per million tokens, over the shipped price table."),
}


def _sources() -> tuple[str, ...]:
    return (*adapters(), SCREEN)


def _readers() -> tuple[str, ...]:
    return tuple(folders("usage.py"))


_WRITTEN: tuple[Key, ...] = (
    Key("watchdog", "signal_interval", Type.SECONDS,
        "Time between light checks: handoff, limits, stalls, wakes, done markers.", "30", s.positive),
    Key("watchdog", "heavy_interval", Type.SECONDS,
        "The longest time between two full checks of restarts and the phase. "
        "The watchdog notices a death at once, whatever this says.", "300", s.positive),
    Key("watchdog", "limit_probe_fallback", Type.SECONDS,
        "How often a limited agent is tried again when the banner does not say when the limit ends.",
        "300", s.positive),
    Key("watchdog", "limit_reset_slack", Type.SECONDS,
        "How long to wait past the announced reset before the agent is tried.", "45", s.not_negative),
    Key("watchdog", "stall_grace", Type.SECONDS,
        "How long past its WAITING-UNTIL time an idle agent is left alone.", "180", s.not_negative),
    Key("watchdog", "log_tokens", Type.FLAG,
        "Write one record of tokens and time per phase. [loop] may hold it too; either one turns it on.",
        "true"),
    Key("watchdog", "notify_after", Type.SECONDS,
        "How long an agent must be asking before [[notify]] speaks, where a target does not say `after`.",
        "300", s.not_negative),

    Key("defaults", "session_prefix", Type.STRING,
        "The project's tmux namespace: a session is called prefix + name. Differs for every project.",
        '"myproj-"', check=s.name),
    Key("defaults", "log_dir", Type.PATH,
        "Where logs and state live. Keep it out of git.", '".ao-state"', check=s.filled),
    Key("defaults", "project_dir", Type.PATH,
        "The project's root: every relative path below starts here. Itself relative to the config file.",
        '"."', derived="the directory of the config file", default=""),
    Key("defaults", "tmux_socket", Type.STRING,
        'The tmux server, as in tmux -L. "default" is your own server.', '"ao-myproj"', check=s.socket,
        derived="ao- and the prefix without its trailing - or _", default=""),

    Key("agent", "name", Type.STRING,
        "What the verbs call it. Unique among agents and services, whatever the case; watchdog is taken.",
        '"builder"', check=s.name),
    Key("agent", "session", Type.STRING, "Its tmux session, where prefix + name will not do.",
        '"my-builder"', check=s.name, derived="session_prefix + name", default=""),
    Key("agent", "kind", Type.STRING,
        "loop: driven by the phases of [loop]. persistent: kept running. task: runs its prompt once.",
        '"loop"', choices=("loop", "persistent", "task"), default="persistent"),
    Key("agent", "backend", Type.STRING,
        "A [backend.NAME] of this file or a shipped profile.", '"claude"', inherited=True,
        derived="none: an agent needs one, here or in [defaults]", default=""),
    Key("agent", "model", Type.STRING,
        "The model, as the CLI spells it. A phase may change it for its own time.",
        '"claude-opus-4-8"', inherited=True, derived="the CLI's own"),
    Key("agent", "dir", Type.PATH, "Working directory.", '"work/builder"', inherited=True,
        derived="the project directory", default=""),
    Key("agent", "watch", Type.STRING,
        "none: left alone. heal: restarted when dead, wedged or running the wrong program. "
        "heal+stall: restarted also when idle past stall_idle. A task never inherits it.",
        '"heal"', choices=WATCH, inherited=True, derived="loop: heal+stall, persistent: heal, task: none",
        default=""),
    Key("agent", "role", Type.STRING,
        "Which role prompt a loop agent gets: roles_dir/ROLE.md. Phase models and pings may name it.",
        '"builder"', check=s.label),
    Key("agent", "resume", Type.FLAG,
        "Continue the last conversation at every start, where the backend can. A new one begins with a task "
        "that is called for again, with `restart --fresh`, and where the old one cannot go on.",
        "false", inherited=True),
    Key("agent", "resume_on_reset", Type.FLAG,
        "The watchdog wakes the agent when its usage limit ends; false leaves that to you.", "false",
        inherited=True),
    Key("agent", "enabled", Type.FLAG,
        "false: a bare up does not start it and the watchdog ignores it. Naming it still starts it.",
        "false"),
    Key("agent", "wake", Type.TABLE, "A periodic message.",
        '{ interval = 3600, prompt_file = "prompts/look.md" }'),
    Key("agent", "prompt", Type.STRING, "The prompt that a persistent or task agent gets at its start.",
        '"Read TODO.md and start."'),
    Key("agent", "prompt_file", Type.PATH, "A file with that prompt. One of the two, not both.",
        '"prompts/reporter.md"'),
    Key("agent", "log_signature", Type.STRING,
        "Text in the transcript that distinguishes agents which share a directory.", '"PROJECT PHASE"'),
    Key("agent", "account", Type.STRING,
        "Agents that name the same account share one usage-limit window.", '"team-a"', inherited=True),
    Key("agent", "env", Type.WORDS, "Variables set for it. Merged with those of [defaults].",
        '{ LANG = "C.UTF-8" }', check=s.assignments, inherited=True),
    Key("agent", "env_pass", Type.STRINGS,
        "Variables taken from your environment, beside those of the backend. LC_* takes all that begin so.",
        '["GITHUB_TOKEN"]', check=s.passed, inherited=True),
    Key("agent", "env_file", Type.PATH, "A file of KEY=VALUE lines, read at each start.", '".env"',
        inherited=True),
    Key("agent", "clone", Type.STRING,
        "Make dir by cloning this when dir does not exist: a repository's path or address, or a directory. "
        "What takes no pushes (a work tree, a plain directory) is cloned by way of a bare repository "
        "below log_dir.",
        '"."'),

    Key("agent.wake", "interval", Type.SECONDS, "Time between two messages.", "3600", s.positive),
    Key("agent.wake", "prompt_file", Type.PATH, "The file whose text is typed.",
        '"prompts/look.md"',
        check=s.filled),

    Key("service", "name", Type.STRING, "What the verbs call it.", '"cleanlogs"', check=s.name),
    Key("service", "session", Type.STRING, "Its tmux session.", '"my-logs"', check=s.name,
        derived="session_prefix + name", default=""),
    Key("service", "command", Type.STRING, "The shell command it runs.",
        '"python3 engine/agentlog.py follow-all"', check=s.filled, default=REQUIRED),
    Key("service", "dir", Type.PATH, "Working directory.", '"."', derived="the project directory",
        default=""),
    Key("service", "watch", Type.STRING, "heal: restarted when dead. none: left alone.", '"none"',
        choices=("none", "heal"), default="heal"),
    Key("service", "enabled", Type.FLAG, "false: a bare up does not start it.", "false"),
    Key("service", "env", Type.WORDS, "Variables set for it.", '{ PORT = "8080" }', check=s.assignments),
    Key("service", "env_pass", Type.STRINGS, "Variables taken over from your environment.",
        '["GITHUB_TOKEN"]', check=s.passed),
    Key("service", "env_file", Type.PATH, "A file of KEY=VALUE lines, read at each start.", '".env"'),

    Key("loop", "phases", Type.TABLES, "The sequence, at least one phase.",
        '[{ id = "p1", plan = "plans/p1.md", status = "STATUS-p1.md" }]'),
    Key("loop", "kickoff_template", Type.PATH,
        "The file every loop agent's prompt begins with; {phase_id} {plan} {status} {role} are filled in.",
        '"prompts/kickoff.md"', derived="none: the prompt is the role file alone", default=""),
    Key("loop", "roles_dir", Type.PATH, "Where the role prompts ROLE.md are.", '"prompts"',
        default="prompts"),
    Key("loop", "state_file", Type.STRING, "Name of the index file under log_dir/state.",
        '"phase-idx"', check=s.file_name),
    Key("loop", "resume_phase", Type.FLAG,
        "Keep the phase across restarts. false: a bare up with no loop running starts at the first.", "true"),
    Key("loop", "auto_advance", Type.FLAG,
        "The watchdog goes to the next phase when the status file says done.", "true"),
    Key("loop", "done_marker", Type.STRING, "The line in a status file that says done.",
        '"## DONE"', check=s.one_line),
    Key("loop", "done_nudge", Type.FLAG,
        "Remind a stalled loop once per phase to write the marker if the work is done.", "true"),
    Key("loop", "log_tokens", Type.FLAG, "The same as [watchdog] log_tokens.", "true", default=False),
    Key("loop", "handoff", Type.TABLE, "How the sides of a loop wake each other.",
        '{ repo = ".", claim_pings = "adversary", review_pings = "builder" }', default=None),
    Key("loop", "on_complete", Type.TABLE, "What happens after the last phase.",
        '{ trigger_file = ".run-on-complete", run = "reporter" }'),

    Key("loop.phases", "id", Type.STRING, "Unique name of the phase.", '"p1"', check=s.label),
    Key("loop.phases", "plan", Type.STRING, "The plan, as the kickoff names it.",
        '"plans/p1.md"', check=s.one_line),
    Key("loop.phases", "status", Type.PATH,
        "The file that says done, one per phase: in handoff.repo/state_subdir, else in handoff.repo.",
        '"STATUS-p1.md"', check=s.filled),
    Key("loop.phases", "models", Type.WORDS,
        "Models for this phase only, by role (by name for an agent without a role).",
        '{ builder = "claude-opus-4-8" }'),
    Key("loop.phases", "gates", Type.TABLES, "Checks, in order, after the done marker is seen.",
        '[{ run = "make test" }, { clean = true }]'),

    Key("loop.phases.gates", "run", Type.STRING, "A shell command that must exit with 0.", '"make test"'),
    Key("loop.phases.gates", "clean", Type.FLAG, "The work tree has no uncommitted change.", "true"),
    Key("loop.phases.gates", "review", Type.STRING,
        "The newest review commit is newer than the newest claim and carries this word.", '"PASS"'),
    Key("loop.phases.gates", "ratchet", Type.STRING,
        "A shell command whose last number may only hold or improve.", '"./count-failures"'),
    Key("loop.phases.gates", "metric", Type.STRING,
        "What the ratchet's number is called. It may not fall; one whose name begins with - may not rise.",
        '"-failures"'),
    Key("loop.phases.gates", "timeout", Type.SECONDS, "When the command is killed and has failed.",
        "600", s.positive),

    Key("loop.handoff", "repo", Type.PATH, "The repository that is watched.", '"."', default="."),
    Key("loop.handoff", "claim_pings", Type.NAMES, "Agents or roles that are pinged about a claim.",
        '"adversary"'),
    Key("loop.handoff", "review_pings", Type.NAMES, "Agents or roles that are pinged about a review.",
        '"builder"'),
    Key("loop.handoff", "inboxes", Type.STRINGS,
        "Two files; a change of the first pings claim_pings, of the second review_pings.",
        '["ADVERSARY-INBOX.md", "BUILDER-INBOX.md"]'),
    Key("loop.handoff", "claim_pattern", Type.REGEX, "Commit subjects that are claims.",
        "'^claim\\('", check=s.filled),
    Key("loop.handoff", "review_pattern", Type.REGEX, "Commit subjects that are reviews.",
        "'^review\\('", check=s.filled),
    Key("loop.handoff", "state_subdir", Type.PATH,
        "Where status and inbox files are, inside the repository.",
        '"machine-docs"'),
    Key("loop.handoff", "branch", Type.STRING, "The branch that is watched.", '"main"', check=s.branch,
        derived="the remote's default branch, else the local one"),

    Key("loop.on_complete", "trigger_file", Type.PATH,
        "The task runs only if this file exists under log_dir; it is used up.", '".run-on-complete"',
        check=s.filled),
    Key("loop.on_complete", "run", Type.STRING, "A task agent.", '"reporter"', check=s.filled),

    Key("backend", "inherits", Type.STRING, "Start from this backend or shipped profile.", '"claude"'),
    Key("backend", "bin", Type.STRING,
        "The program; for exec a whole shell command with {kickoff} {session} {model}.", '"claude"',
        check=s.filled, derived="required unless inherited"),
    Key("backend", "flags", Type.STRING, "More words of the command line, as the shell reads them.",
        '"--verbose"'),
    Key("backend", "prompt_delivery", Type.STRING,
        "arg: the prompt is an argument. ping: it is typed once the screen is up. exec: it is a file.",
        '"ping"', choices=("arg", "ping", "exec")),
    Key("backend", "prompt_mark", Type.STRING,
        "The word before a prompt on the command line, so that no prompt is read as a flag.", '"--"'),
    Key("backend", "model_flag", Type.STRING,
        "The flag that names the model; {model} is filled in.",
        "\"-m '{model}'\""),
    Key("backend", "model_env", Type.FLAG, "Pass the model through model_variable instead.", "true"),
    Key("backend", "model_variable", Type.STRING,
        "A variable of JSON settings: model_env puts the model into it, beside what it holds.",
        '"MY_CLI_CONFIG"', check=s.variable),
    Key("backend", "supports_resume", Type.FLAG, "The CLI can continue a conversation.", "true"),
    Key("backend", "resume_flag", Type.STRING,
        "The flag that continues a conversation; {id} is filled in.",
        "\"--session '{id}'\""),
    Key("backend", "resume_refused_re", Type.REGEX,
        "What it prints last when a conversation is not there or in use: then the next start is a fresh one.",
        "'No conversation found'"),
    Key("backend", "session_id_flag", Type.STRING,
        "The flag that gives a new conversation an id of ours; {id} is filled in.",
        "\"--session-id '{id}'\""),
    Key("backend", "settings_flag", Type.STRING,
        "The flag that passes settings made for this run; {file} is filled in.",
        "\"--settings '{file}'\""),
    Key("backend", "notify_flag", Type.STRING,
        "The flag that has a program of ours run after each turn; {notify} is that program as a TOML array.",
        '"-c notify={notify}"'),
    Key("backend", "port_flag", Type.STRING,
        "The flag that opens the CLI's server; {port} is a free one of the loopback, chosen for each run.",
        '"--port {port}"'),
    Key("backend", "server_key_env", Type.STRING,
        "The variable from which that server takes its password.", '"OPENCODE_SERVER_PASSWORD"',
        check=s.variable),
    Key("backend", "message_delivery", Type.STRING,
        "keys: words are typed. server: they are posted to its server where that answers, else typed.",
        '"server"', choices=("keys", "server")),
    Key("backend", "remote_control", Type.FLAG, "Pass the remote-control flag.", "true"),
    Key("backend", "remote_control_flag", Type.STRING,
        "The flag that remote_control adds; {session} is filled in.",
        "\"--remote '{session}'\""),
    Key("backend", "attach", Type.STRING,
        "The command of a client that joins a server: {bin} {server} {dir}.",
        '"{bin} attach {server} --dir {dir}"'),
    Key("backend", "server", Type.STRING, "The address of the server that attach joins.",
        '"http://127.0.0.1:4096"'),
    Key("backend", "preamble", Type.STRING, "Shell that runs in the agent's directory before it starts.",
        '"set -a; . ./.env; set +a"'),
    Key("backend", "env", Type.WORDS, "Variables set for its agents.", '{ NO_COLOR = "1" }',
        check=s.assignments),
    Key("backend", "env_pass", Type.STRINGS,
        "Variables taken over from your environment. Replaces the profile's list; to add, use the agent's.",
        '["MY_API_KEY"]', check=s.passed),
    Key("backend", "nested_env", Type.STRINGS,
        "Variables by which the CLI would believe that it runs inside another one. No pane of the fleet has "
        "them, unless env_pass names one to the letter.", '["MY_CLI_INSIDE"]', check=s.variables),
    Key("backend", "process_name", Type.STRING,
        "The process a healthy pane runs. Empty: never restarted for running another program.", '"claude"'),
    Key("backend", "submit_key", Type.STRING, "The key that submits what was typed.", '"C-m"',
        check=s.submit_key),
    Key("backend", "clear_keys", Type.STRINGS,
        "Keys that empty the composer. They take a text of ours back that cannot be submitted.",
        '["C-e", "C-u"]', check=s.tmux_keys),
    Key("backend", "queues_input", Type.FLAG, "The CLI keeps what is typed while it works.", "true"),
    Key("backend", "connect_delay", Type.SECONDS, "The longest wait for the screen before typing.",
        "12",
        s.not_negative),
    Key("backend", "start_grace", Type.SECONDS, "Time after a start in which nothing is judged.", "30",
        s.not_negative),
    Key("backend", "stall_idle", Type.SECONDS, "Idle time after which heal+stall restarts the agent.",
        "300", s.positive),
    Key("backend", "log_grace", Type.SECONDS, "Output within this time counts as work.", "180",
        s.not_negative),
    Key("backend", "footer_ui", Type.FLAG,
        "A footer stays on the screen after a turn: only the bottom lines show whether it works.", "true"),
    Key("backend", "active_re", Type.REGEX, "The screen shows work. On top of the profile's patterns.",
        "'esc to interrupt'"),
    Key("backend", "limit_re", Type.REGEX, "The screen shows a usage limit.", "'usage limit'"),
    Key("backend", "fatal_re", Type.REGEX, "The conversation cannot go on: stop and start afresh.",
        "'cannot be modified'"),
    Key("backend", "signals", Type.STRINGS, "Structured sources, the most trusted first.",
        '["hooks", "screen"]', choices=_sources),
    Key("backend", "transcript", Type.STRING, "Which transcript reader understands it.", '"claude"',
        choices=_readers),
    Key("backend", "version", Type.STRING, "The CLI release this was proved against.", '"2.1.197"'),
    Key("backend", "patterns", Type.TABLES, "What the screen may show.",
        "[{ name = \"busy\", state = \"working\", re = 'esc to interrupt' }]"),
    Key("backend", "dialogs", Type.TABLES, "Questions that the CLI may open.",
        "[{ name = \"trust\", re = 'Do you trust', key = \"Enter\" }]"),
    Key("backend", "texts", Type.TABLES, "Texts that need care, so that they arrive as text.",
        "[{ name = \"shell\", re = '\\A!', treat = \"refuse\", why = \"it would be run\" }]"),
    Key("backend", "screen", Type.WORDS, "Named expressions that find the regions of the screen.",
        "{ composer = '^> (?P<draft>.*)$' }", check=s.landmarks, choices=LANDMARKS),

    Key("backend.patterns", "name", Type.STRING, "What the pattern is called.", '"busy"',
        check=s.filled),
    Key("backend.patterns", "state", Type.STRING, "What the agent is doing when it is seen.",
        '"working"',
        choices=tuple(ScreenState)),
    Key("backend.patterns", "re", Type.REGEX, "What is looked for.", "'esc to interrupt'",
        check=s.filled),
    Key("backend.patterns", "region", Type.STRING, "Which part of the screen counts.", '"live"',
        choices=REGIONS),
    Key("backend.patterns", "unless", Type.REGEX, "Seen on the same line, this takes it back.",
        "'not yet'"),
    Key("backend.patterns", "fix", Type.STRING,
        "What a person must do, where trying again will not help: an agent that shows this error, or ends "
        "with these words before it was ready, is FATAL.", '"correct the agent\'s model"'),
    Key("backend.patterns", "fixture", Type.STRING, "The capture that proves it.", '"claude/busy.txt"'),
    Key("backend.patterns", "version", Type.STRING, "The CLI release it was seen in.", '"2.1.197"'),

    Key("backend.dialogs", "name", Type.STRING, "What the dialog is called.", '"trust"',
        check=s.filled),
    Key("backend.dialogs", "re", Type.REGEX, "What is looked for.", "'Do you trust'",
        check=s.filled),
    Key("backend.dialogs", "key", Type.STRING,
        "The one key that may be pressed. Empty: it is only reported.",
        '"Enter"', check=s.tmux_key),
    Key("backend.dialogs", "fix", Type.STRING, "What the operator should do instead.",
        '"Log in once by hand."'),
    Key("backend.dialogs", "fixture", Type.STRING, "The capture that proves it.", '"claude/trust.txt"'),
    Key("backend.dialogs", "version", Type.STRING, "The CLI release it was seen in.", '"2.1.197"'),

    Key("backend.texts", "name", Type.STRING, "What the rule is called.", '"shell"',
        check=s.filled),
    Key("backend.texts", "re", Type.REGEX, "What is looked for in the text.", r"'\A!'",
        check=s.filled),
    Key("backend.texts", "treat", Type.STRING,
        "blank-before and blank-after add a blank, when-idle waits for the end of the turn, refuse says why.",
        '"blank-before"', choices=("blank-before", "blank-after", "when-idle", "refuse")),
    Key("backend.texts", "by", Type.STRING,
        "For texts that are typed (keys), for a prompt on the command line (argument), or both.",
        '"keys"', choices=("keys", "argument", "both")),
    Key("backend.texts", "why", Type.STRING, "Why a text is refused.", '"it would be run"'),
    Key("backend.texts", "version", Type.STRING, "The CLI release it was seen in.", '"2.1.325"'),

    Key("notify", "to", Type.STRING,
        'command, desktop, or "url" for a service whose address stands in the variable url_env.', '"command"',
        choices=("command", "desktop", "url")),
    Key("notify", "on", Type.STRINGS,
        "Which changes. Not given: those that need a person.", '["fatal", "asking"]', choices=tuple(NOTICES)),
    Key("notify", "command", Type.STRING,
        "What command runs; the message comes as JSON on its standard input.", '"./tell-me"'),
    Key("notify", "url_env", Type.STRING,
        "Variable that holds the address; addresses never stand in this file. A command gets it too.",
        '"FLEET_WEBHOOK"', check=s.variable),
    Key("notify", "quiet", Type.STRING, "Hours of the day in which it is silent.", '"22:00-07:00"',
        check=s.quiet_hours),
    Key("notify", "after", Type.SECONDS,
        "How long a state that can end by itself must last before a message is sent.", "60", s.not_negative),
    Key("notify", "retries", Type.COUNT, "How often a failed message is tried again.", "3",
        s.not_negative),

    Key("price", "input", Type.AMOUNT, "Price of input.", "3.0", s.not_negative),
    Key("price", "output", Type.AMOUNT, "Price of output.", "15.0", s.not_negative),
    Key("price", "cache_write", Type.AMOUNT, "Price of tokens written to the cache.", "3.75",
        s.not_negative),
    Key("price", "cache_read", Type.AMOUNT, "Price of tokens read from the cache.", "0.3",
        s.not_negative),
)  # fmt: skip


SPECS = {
    "watchdog": model.WatchdogSpec,
    "defaults": model.Fleet,
    "agent": model.Member,
    "agent.wake": model.Wake,
    "service": model.Member,
    "loop": model.Loop,
    "loop.phases": model.Phase,
    "loop.phases.gates": model.Gate,
    "loop.handoff": model.Handoff,
    "loop.on_complete": model.OnComplete,
    "backend": model.Backend,
    "backend.patterns": model.Pattern,
    "backend.dialogs": model.Dialog,
    "backend.texts": model.TextRule,
    "notify": model.Notify,
    "price": model.Price,
}


def _with_defaults() -> tuple[Key, ...]:
    defaults: dict[tuple[str, str], Any] = {
        (section, field.name): REQUIRED if field.default is dataclasses.MISSING else field.default
        for section, spec in SPECS.items()
        for field in dataclasses.fields(spec)
    }
    return tuple(
        key._replace(default=defaults[key.section, key.name]) if key.default is IN_MODEL else key
        for key in _WRITTEN
    )


KEYS: tuple[Key, ...] = _with_defaults()


def _by_section() -> dict[str, dict[str, Key]]:
    table: dict[str, dict[str, Key]] = {section: {} for section in SECTIONS}
    for key in KEYS:
        table[key.section][key.name] = key
    for key in KEYS:
        if key.inherited:
            table["defaults"][key.name] = key._replace(section="defaults")
    return table


BY_SECTION: dict[str, dict[str, Key]] = _by_section()
