"""Closed words: what travels between the rooms, and what `status` prints. No sentence decides."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A word that people meet, with what it means: docs/states.md and docs/events.md print the sentence."""

    means: str

    def __new__(cls, word: str, means: str = "") -> Self:
        new = str.__new__(cls, word)
        new._value_, new.means = word, means
        return new


class Outcome(StrEnum):
    """What became of an effect."""

    DONE = "done"
    EXISTS = "exists"  # a start: one is there already, nothing was done
    STALE = "stale"  # the world had changed since the look: nothing was done
    REFUSED = "refused"  # it was not done; a later try may succeed
    IMPOSSIBLE = "impossible"  # it was not done, and no try can succeed before a person helps
    UNKNOWN = "unknown"  # it may have been done


class MessageState(StrEnum):
    """How far a message got. Only the last three are final, only CONFIRMED is success."""

    QUEUED = "queued"
    TYPED = "typed"
    SUBMITTED = "submitted"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"  # it was never typed: not wanted, or not worth saying any more


FINAL = frozenset({MessageState.CONFIRMED, MessageState.FAILED, MessageState.WITHDRAWN})


class MessageKind(StrEnum):
    """What a message is for."""

    KICKOFF = "kickoff"  # the prompt of a run, where the CLI takes it by typing
    SEND = "send"  # an operator's words
    PING = "ping"  # the loop has news: see PingAbout
    WAKE = "wake"  # the agent's own interval has passed
    PROBE = "probe"  # a usage window is over: does it work again?
    NUDGE = "nudge"  # idle: is the done marker missing?
    MARKER = "marker"  # the time named by WAITING-UNTIL has come


class PingAbout(StrEnum):
    """What a ping tells of."""

    CLAIM = "claim"
    REVIEW = "review"
    INBOX = "inbox"
    GATE = "gate"


class Witness(StrEnum):
    """The source of a report, or of a usage window."""

    SCREEN = "screen"
    HOOK = "hook"
    REGISTRY = "registry"
    TRANSCRIPT = "transcript"
    NOTIFY = "notify"
    SERVER = "server"
    OPERATOR = "operator"  # of a window that a person has ended


class StopStage(StrEnum):
    """How far a stop got."""

    BEGUN = "begun"  # nothing has been sent yet
    ASKED = "asked"  # SIGTERM
    FORCED = "forced"  # SIGKILL
    REMOVED = "removed"  # the session is being taken away


class Told(StrEnum):
    """What the verb says of the agent, as it stands in its --json."""

    STARTED = "started"
    RUNNING = "was running"
    NOT_STARTED = "not started"
    PAUSED = "paused"
    FINISHED = "finished"
    LIMITED = "limited"
    NAMED = "named"  # in a remark, with the command that stops it
    STOPPED = "stopped"
    NOTHING = "nothing was running"
    REFUSED = "refused"  # the verb does nothing at all, and says why


class Origin(StrEnum):
    """Where the environment of a run is from."""

    CALLER = "caller"
    HANDED_ON = "handed on"
    WATCHDOG = "watchdog"


class EventType(Word):
    """Everything that can have happened. Past tense: an event is a fact."""

    AGENT_STARTED = "agent.started", "its session was made; facts: `run`, `model`, `phase`, `resumed`"
    AGENT_READY = "agent.ready", "seen at its prompt for the first time in this run"
    AGENT_STOPPED = (
        "agent.stopped",
        "every process of its run is gone, because the watchdog or a verb stopped it",
    )
    AGENT_SURVIVED_STOP = (
        "agent.survived_stop",
        "a process of its run outlived a stop; no new start before it is gone",
    )
    AGENT_EXITED = "agent.exited", "ended without a stop, with exit code 0"
    AGENT_DIED = "agent.died", "ended without a stop, with another exit code or by a signal"
    AGENT_HEALED = "agent.healed", "restarted after an unplanned end"
    AGENT_START_FAILED = "agent.start_failed", "tmux refused the start; tried again after 5 s"
    AGENT_FLAPPED = "agent.flapped", "ended too often; from now on tried rarely"
    AGENT_FAILED_FOR_GOOD = "agent.failed_for_good", "a retry cannot succeed; the reason says what to do"
    AGENT_RECOVERED = "agent.recovered", "was ready for 30 minutes; its earlier ends are forgotten"
    AGENT_RESET = "agent.reset", "the operator cleared its restart budget, usage limit and FATAL"
    AGENT_STATE_CHANGED = (
        "agent.state_changed",
        "another detail word than before; facts: `was`, `now`, `rule`",
    )
    AGENT_LIMITED = "agent.limited", "a usage limit was read; left alone until the reset time in the reason"
    AGENT_LIMIT_WITHOUT_RESET = (
        "agent.limit_without_reset",
        "a usage limit without a reset time; probed every `limit_probe_fallback` seconds",
    )
    AGENT_PROBED = (
        "agent.probed",
        "after a usage limit: the watchdog typed one line to see whether it is over",
    )
    AGENT_RESUMED = "agent.resumed", "the usage limit is over, the agent works again"
    AGENT_WAITING = "agent.waiting", "the agent said until when it waits"
    AGENT_MARKER_LAPSED = "agent.marker_lapsed", "the time that the agent waited for is over"
    AGENT_MARKER_MALFORMED = (
        "agent.marker_malformed",
        "the agent's line about waiting cannot be read; it is ignored",
    )
    AGENT_STALLED = "agent.stalled", "idle for too long; restarted"
    AGENT_WEDGED = "agent.wedged", "its conversation is broken; restarted"
    AGENT_MISMATCHED = "agent.mismatched", "another program runs in its pane; restarted"
    AGENT_ASKED = "agent.asked", "shows a question; a person must answer, or its profile knows the key"
    AGENT_UNKNOWN = (
        "agent.unknown",
        "its screen has been unreadable for a while; a copy lies under state/unread/",
    )
    AGENT_PAUSED = "agent.paused", "the operator paused it"
    AGENT_UNPAUSED = "agent.unpaused", "the operator ended the pause, or its time was over"
    AGENT_FROZEN = "agent.frozen", "its processes are stopped where they are"
    AGENT_FLOODED = "agent.flooded", "prints more than its log may hold; the log keeps the beginning"
    AGENT_LOG_RESUMED = (
        "agent.log_resumed",
        "its log was cut off, for example by a full disk, and is written again",
    )
    AGENT_RESUME_ID_LEARNED = (
        "agent.resume_id_learned",
        "its CLI reported the id of the conversation; a restart continues there",
    )
    AGENT_RESUME_ID_SET_ASIDE = (
        "agent.resume_id_set_aside",
        "that conversation cannot be resumed; the next start is a fresh one",
    )

    MESSAGE_QUEUED = "message.queued", "waits to be typed"
    MESSAGE_CONFIRMED = "message.confirmed", "the agent accepted it"
    MESSAGE_FAILED = "message.failed", "it was not delivered; the reason says why"
    MESSAGE_WITHDRAWN = (
        "message.withdrawn",
        "it waited, and its sender took it back or its phase is over: it is not typed any more",
    )

    PHASE_ADVANCED = "phase.advanced", "the next phase has begun; facts hold the evidence"
    PHASE_PRE_DONE = "phase.pre_done", "was done before it began, and was skipped"
    PHASE_HELD = "phase.held", "the loop does not move; the reason says what to fix"
    PHASE_SET = "phase.set", "the operator changed the phase"
    SEQUENCE_COMPLETED = "sequence.completed", "the last phase is done; SEQUENCE-COMPLETE is written"
    SEQUENCE_REOPENED = "sequence.reopened", "there is something to do again after completion"
    TASK_TRIGGERED = "task.triggered", "the sequence is complete and its task is started"

    GATE_STARTED = "gate.started", "a check runs; facts: `phase`, `commit`, `log`"
    GATE_PASSED = "gate.passed", "it passed"
    GATE_FAILED = (
        "gate.failed",
        "it failed; the side that must fix it gets a message with the path of the log",
    )

    HANDOFF_CLAIMED = "handoff.claimed", "new claims; facts: `commit`, `count`"
    HANDOFF_REVIEWED = "handoff.reviewed", "new reviews; facts: `commit`, `count`"
    HANDOFF_INBOX_CHANGED = "handoff.inbox_changed", "an inbox holds a new message"
    HANDOFF_REBASELINED = "handoff.rebaselined", "history was rewritten, or the last known commit is gone"
    HANDOFF_FETCH_FAILED = (
        "handoff.fetch_failed",
        "the remote does not answer; the refs last fetched are used",
    )
    HANDOFF_FETCH_RECOVERED = "handoff.fetch_recovered", "the remote answers again"

    CONFIG_LOADED = "config.loaded", "an edit is in force"
    CONFIG_REJECTED = "config.rejected", "an edit is not in force; the reason names file, line and key"
    CONFIG_RECOVERED = "config.recovered", "the file can be read again"
    CONFIG_SHRUNK = (
        "config.shrunk",
        "the file lost more than half of its agents; it must stay so for a minute",
    )

    WATCHDOG_STARTED = "watchdog.started", "ticks from now on; fact: `version`"
    WATCHDOG_STOPPED = "watchdog.stopped", "ended in order"
    WATCHDOG_DEGRADED = "watchdog.degraded", "something cannot be read or written; `status` shows it"
    WATCHDOG_RECOVERED = "watchdog.recovered", "everything can be read and written again"
    WATCHDOG_RESUMED = "watchdog.resumed", "the machine slept or its clock moved; all ages start afresh"
    WATCHDOG_STEP_FAILED = (
        "watchdog.step_failed",
        "a bug of agent-fleet; the agent or step that it names loses a turn; fact: `trace`",
    )
    WATCHDOG_ENSURED = "watchdog.ensured", "`ensure` started it again"

    STATE_RESTORED = (
        "state.restored",
        "the state directory was removed under a running watchdog and is written again",
    )
    SERVER_FOUNDED = "server.founded", "a tmux server was started"
    SERVER_LOST = "server.lost", "the tmux server is gone"

    EFFECT_BEGUN = "effect.begun", "on disk before it happens: a start, a signal, keys, a removed session"
    ACTION_STALE = "action.stale", "the situation had changed since the look; nothing was done"
    ACTION_FAILED = "action.failed", "tried, and it did not work"
    DESIRED_CHANGED = "desired.changed", "a verb such as `up` or `down` changed the desired state"
    SIGNAL_DISAGREED = "signal.disagreed", "two sources report different things of one agent"
    SIGNAL_UNREADABLE = "signal.unreadable", "a file among an agent's reports cannot be read; it is skipped"
    TOKENS_RECORDED = "tokens.recorded", "a phase's record was written to token-log.jsonl"
    NOTIFY_SENT = "notify.sent", "a target of `[[notify]]` got the message"
    NOTIFY_FAILED = "notify.failed", "a target of `[[notify]]` did not take the message"


# --------------------------------------------------------------------------------------------------
# The words that `status` prints. Closed sets: a new word is a decision, not an edit.
# `State` is coarse and stable, made for programs; `Detail` is the finer word, made for people.


class State(Word):
    """What an agent is, in five words."""

    RUNNING = "RUNNING", "the session lives, whatever the agent does in it"
    STOPPED = "STOPPED", "no process runs, and the desired state is down, or the work is done"
    DEAD = (
        "DEAD",
        "the desired state is up, but no process runs; the watchdog restarts it when `watch` allows",
    )
    FATAL = (
        "FATAL",
        "a retry cannot succeed; the watchdog starts nothing until a person acts; `explain` says what to do",
    )
    UNKNOWN = "UNKNOWN", "tmux did not answer, or no pattern of the profile describes the screen"


class Detail(Word):
    """What it is doing, or why it is not."""

    STARTING = "STARTING", "started, not yet at its prompt"
    WORKING = "WORKING", "in the middle of a turn; a service is always this while it lives"
    IDLE = "IDLE", "at its prompt, nothing to do"
    ASKING = "ASKING", "shows a question; the watchdog types nothing until a person answers"
    LIMITED = "LIMITED", "the account reached its usage limit; left alone until the time shown"
    RETRYING = "RETRYING", "the CLI itself waits and tries again"
    WAITING = "WAITING", "the agent said until when it waits; not counted as stalled before that"
    ERROR = "ERROR", "the last turn ended with an error of the provider"
    WEDGED = (
        "WEDGED",
        "the conversation is broken (a `wedged` pattern matched twice); the watchdog restarts the agent",
    )
    CONTEXT = "CONTEXT", "no context left"
    MISMATCH = (
        "MISMATCH",
        "another program than the backend's runs in the pane; the watchdog restarts the agent",
    )
    STOPPING = "STOPPING", "being stopped: SIGTERM first, SIGKILL later"
    PAUSED = "PAUSED", "the operator paused it: no restart, no message"
    FROZEN = "FROZEN", "paused, and its processes are stopped where they are"
    BACKOFF = "BACKOFF", "ended, and is restarted after the wait that the reason names"
    FLAPPING = (
        "FLAPPING",
        "ended five times within 15 minutes; tried every 10 minutes, after an hour every hour",
    )
    FATAL = "FATAL", "a retry cannot succeed; the reason says what to do"
    HELD = "HELD", "the loop is held, so its agents are not started; or a verb is at work on the agent"
    DONE = "DONE", "its phase, or all of them, are over"
    EXITED = "EXITED", "its run has ended"
    FOREIGN = "FOREIGN", "a session of its name belongs to another; it is not touched"
    UNSEEN = "UNSEEN", "tmux did not answer"
    UNKNOWN = (
        "UNKNOWN",
        "no pattern of the profile describes the screen; never restarted, reported after a while",
    )
    DOWN = "DOWN", "the desired state is down"
    DISABLED = "DISABLED", "`enabled = false`"
    UNWATCHED = "UNWATCHED", "runs, but no watchdog looks at it"


class WatchdogState(StrEnum):
    """Whether the watchdog works."""

    RUNNING = "running"
    STALE = "stale"  # it lives, and has not ticked for too long
    STOPPED = "stopped"
