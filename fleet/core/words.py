"""Closed words: what travels between the rooms, and what `status` prints. No sentence decides."""

from __future__ import annotations

from enum import StrEnum


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
    """Who said so: the source of a report, or of a usage window."""

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


class EventType(StrEnum):
    """Everything that can have happened. Past tense: an event is a fact."""

    AGENT_STARTED = "agent.started"
    AGENT_READY = "agent.ready"
    AGENT_STOPPED = "agent.stopped"
    AGENT_SURVIVED_STOP = "agent.survived_stop"
    AGENT_EXITED = "agent.exited"
    AGENT_DIED = "agent.died"
    AGENT_HEALED = "agent.healed"
    AGENT_START_FAILED = "agent.start_failed"
    AGENT_FLAPPED = "agent.flapped"
    AGENT_FAILED_FOR_GOOD = "agent.failed_for_good"
    AGENT_RECOVERED = "agent.recovered"
    AGENT_RESET = "agent.reset"
    AGENT_STATE_CHANGED = "agent.state_changed"
    AGENT_LIMITED = "agent.limited"
    AGENT_LIMIT_WITHOUT_RESET = "agent.limit_without_reset"
    AGENT_PROBED = "agent.probed"
    AGENT_RESUMED = "agent.resumed"
    AGENT_WAITING = "agent.waiting"
    AGENT_MARKER_LAPSED = "agent.marker_lapsed"
    AGENT_MARKER_MALFORMED = "agent.marker_malformed"
    AGENT_STALLED = "agent.stalled"
    AGENT_WEDGED = "agent.wedged"
    AGENT_MISMATCHED = "agent.mismatched"
    AGENT_ASKED = "agent.asked"
    AGENT_UNKNOWN = "agent.unknown"
    AGENT_PAUSED = "agent.paused"
    AGENT_UNPAUSED = "agent.unpaused"
    AGENT_FROZEN = "agent.frozen"
    AGENT_FLOODED = "agent.flooded"
    AGENT_LOG_RESUMED = "agent.log_resumed"
    AGENT_RESUME_ID_LEARNED = "agent.resume_id_learned"
    AGENT_RESUME_ID_SET_ASIDE = "agent.resume_id_set_aside"

    MESSAGE_QUEUED = "message.queued"
    MESSAGE_CONFIRMED = "message.confirmed"
    MESSAGE_FAILED = "message.failed"
    MESSAGE_WITHDRAWN = "message.withdrawn"

    PHASE_ADVANCED = "phase.advanced"
    PHASE_PRE_DONE = "phase.pre_done"
    PHASE_HELD = "phase.held"
    PHASE_SET = "phase.set"
    SEQUENCE_COMPLETED = "sequence.completed"
    SEQUENCE_REOPENED = "sequence.reopened"
    TASK_TRIGGERED = "task.triggered"

    GATE_STARTED = "gate.started"
    GATE_PASSED = "gate.passed"
    GATE_FAILED = "gate.failed"

    HANDOFF_CLAIMED = "handoff.claimed"
    HANDOFF_REVIEWED = "handoff.reviewed"
    HANDOFF_INBOX_CHANGED = "handoff.inbox_changed"
    HANDOFF_REBASELINED = "handoff.rebaselined"
    HANDOFF_FETCH_FAILED = "handoff.fetch_failed"
    HANDOFF_FETCH_RECOVERED = "handoff.fetch_recovered"

    CONFIG_LOADED = "config.loaded"
    CONFIG_REJECTED = "config.rejected"
    CONFIG_RECOVERED = "config.recovered"
    CONFIG_SHRUNK = "config.shrunk"

    WATCHDOG_STARTED = "watchdog.started"
    WATCHDOG_STOPPED = "watchdog.stopped"
    WATCHDOG_DEGRADED = "watchdog.degraded"
    WATCHDOG_RECOVERED = "watchdog.recovered"
    WATCHDOG_RESUMED = "watchdog.resumed"
    WATCHDOG_STEP_FAILED = "watchdog.step_failed"
    WATCHDOG_ENSURED = "watchdog.ensured"

    STATE_RESTORED = "state.restored"
    SERVER_FOUNDED = "server.founded"
    SERVER_LOST = "server.lost"

    EFFECT_BEGUN = "effect.begun"
    ACTION_STALE = "action.stale"
    ACTION_FAILED = "action.failed"
    DESIRED_CHANGED = "desired.changed"
    SIGNAL_DISAGREED = "signal.disagreed"
    SIGNAL_UNREADABLE = "signal.unreadable"
    TOKENS_RECORDED = "tokens.recorded"
    NOTIFY_SENT = "notify.sent"
    NOTIFY_FAILED = "notify.failed"


# --------------------------------------------------------------------------------------------------
# The words that `status` prints. Closed sets: a new word is a decision, not an edit.
# `State` is coarse and stable, made for programs; `Detail` is the finer word, made for people.


class State(StrEnum):
    """What an agent is, in five words."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"  # not running, and nobody wants it to
    DEAD = "DEAD"  # not running, and somebody does
    FATAL = "FATAL"  # will not run until a person acts
    UNKNOWN = "UNKNOWN"  # could not be looked at, or the screen says nothing we know


class Detail(StrEnum):
    """What it is doing, or why it is not."""

    STARTING = "STARTING"
    WORKING = "WORKING"
    IDLE = "IDLE"
    ASKING = "ASKING"
    LIMITED = "LIMITED"
    RETRYING = "RETRYING"
    WAITING = "WAITING"
    ERROR = "ERROR"
    WEDGED = "WEDGED"
    CONTEXT = "CONTEXT"
    MISMATCH = "MISMATCH"
    STOPPING = "STOPPING"
    PAUSED = "PAUSED"
    FROZEN = "FROZEN"
    BACKOFF = "BACKOFF"
    FLAPPING = "FLAPPING"
    FATAL = "FATAL"
    HELD = "HELD"
    DONE = "DONE"
    EXITED = "EXITED"
    FOREIGN = "FOREIGN"
    UNSEEN = "UNSEEN"
    UNKNOWN = "UNKNOWN"
    DOWN = "DOWN"
    DISABLED = "DISABLED"
    UNWATCHED = "UNWATCHED"  # runs, and no watchdog says what it is doing


class WatchdogState(StrEnum):
    """Whether the watchdog works."""

    RUNNING = "running"
    STALE = "stale"  # it lives, and has not ticked for too long
    STOPPED = "stopped"


# What each change of the coarse word means. Each can follow each other one, because a look may come late.
EDGES: dict[tuple[State, State], str] = {
    (State.STOPPED, State.RUNNING): "brought up",
    (State.STOPPED, State.DEAD): "wanted, and not there yet",
    (State.STOPPED, State.FATAL): "wanted, and it can never start",
    (State.STOPPED, State.UNKNOWN): "cannot be looked at",
    (State.RUNNING, State.STOPPED): "taken down, or done",
    (State.RUNNING, State.DEAD): "died, exited or was stopped to be restarted",
    (State.RUNNING, State.FATAL): "its credentials are refused",
    (State.RUNNING, State.UNKNOWN): "its screen cannot be read, or tmux does not answer",
    (State.DEAD, State.RUNNING): "healed",
    (State.DEAD, State.STOPPED): "taken down while it was dead",
    (State.DEAD, State.FATAL): "a retry cannot mend it",
    (State.DEAD, State.UNKNOWN): "cannot be looked at",
    (State.FATAL, State.RUNNING): "mended and reset",
    (State.FATAL, State.STOPPED): "reset while nobody wants it",
    (State.FATAL, State.DEAD): "reset, and about to be started",
    (State.FATAL, State.UNKNOWN): "reset, and cannot be looked at",
    (State.UNKNOWN, State.RUNNING): "read again",
    (State.UNKNOWN, State.STOPPED): "seen again, taken down",
    (State.UNKNOWN, State.DEAD): "seen again, dead",
    (State.UNKNOWN, State.FATAL): "seen again, beyond a retry",
}
