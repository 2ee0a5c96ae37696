"""What each verb does to an agent in each state: the whole table, as data.

docs/verbs-and-states.md is made from it, and tests on real tmux walk it cell by cell. Four principles:

- `up` is a fresh try: tallies and FATAL are forgotten. It starts now what may start now, and says when the
  rest will.
- A bare `up` leaves paused ones paused, finished tasks finished and limited ones until their window ends,
  and says so. A name is explicit: `up NAME` unpauses, runs a task again and starts at once.
- `restart` is a stop and `up NAME`, with the conversation kept unless `--fresh`. A window stays in force.
  What cannot be started is not stopped.
- `down` wins over everything. It works without a file, a watchdog or a disk, and takes strays by name. What
  is foreign is left alone, and its owner is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from fleet.core.words import State, Told


class Verb(StrEnum):
    """The five ways to start and to stop."""

    UP = "up"
    UP_NAME = "up NAME"
    RESTART_NAME = "restart NAME"
    DOWN_NAME = "down NAME"
    DOWN = "down"


class Situation(StrEnum):
    """What an agent may be in when a verb comes."""

    ABSENT = "absent"
    BACKOFF = "dead in back-off"
    FLAPPING = "flapping"
    FATAL = "FATAL"
    LIMITED_ALIVE = "limited and alive"
    LIMITED_DEAD = "limited and dead"
    PAUSED = "paused"
    FROZEN = "frozen"
    FINISHED = "finished task"
    UNWATCHED = "unwatched"
    STRAY = "stray"
    FOREIGN = "foreign"
    LOOP_HELD = "loop held"
    LOOP_HELD_DEAD = "loop held, its agent dead"
    LOOP_COMPLETE = "loop complete"


class Around(StrEnum):
    """What may be wrong, or other than before, around an agent that runs."""

    ENVIRONMENT = "another environment"
    OVERRIDE = "an override"
    NO_WATCHDOG = "no watchdog"
    HUNG_WATCHDOG = "a hung watchdog"
    OLD_WATCHDOG = "an old watchdog"
    FULL_DISK = "a disk that takes nothing"
    NO_STATE = "a removed state directory"
    BROKEN_FILE = "a broken file"
    NO_FILE = "a deleted file"


class Pane(StrEnum):
    """What becomes of the process."""

    STARTED = "started"
    REPLACED = "replaced"
    KEPT = "kept"
    NONE = "none"
    ENDED = "ended"  # process and session
    LATER = "later"  # the watchdog starts it at the end of its window


class Wished(StrEnum):
    """What is wanted of it afterwards."""

    UP = "up"
    DOWN = "down"
    PAUSED = "up, paused"
    FROZEN = "up, frozen"


class Tallies(StrEnum):
    """What becomes of its deaths and of a FATAL verdict."""

    NONE = "none"  # it has none, or nothing reads them before the next `up` forgets them
    FORGOTTEN = "forgotten"


class Window(StrEnum):
    """What becomes of its usage window."""

    NONE = "none"
    KEPT = "kept"


class Conversation(StrEnum):
    """What becomes of its conversation."""

    NONE = "none"
    NEW = "new"
    CONTINUED = "continued"
    GOES_ON = "goes on"  # its process does
    KEPT = "kept"  # on record, for the next start


@dataclass(frozen=True, slots=True)
class Fate:
    """One cell of the table."""

    told: Told
    pane: Pane
    wish: Wished
    conversation: Conversation
    text: str
    tallies: Tallies = Tallies.NONE
    window: Window = Window.NONE
    code: int = 0


SITUATIONS: Mapping[Situation, str] = {
    Situation.ABSENT: "It is in the file and was never brought up.",
    Situation.BACKOFF: "It died more than once, and the watchdog waits before it tries again.",
    Situation.FLAPPING: "It died five times within a quarter of an hour. The cause is fixed.",
    Situation.FATAL: "A retry cannot fix why it died. A person has fixed it.",
    Situation.LIMITED_ALIVE: "It runs, and its usage window is shut.",
    Situation.LIMITED_DEAD: "It died while its usage window was shut.",
    Situation.PAUSED: "It is paused, and died since.",
    Situation.FROZEN: "`pause --freeze` holds its processes in place.",
    Situation.FINISHED: "A task that ended with exit code 0.",
    Situation.UNWATCHED: 'An agent with `watch = "none"` that died.',
    Situation.STRAY: "It runs with this project's stamp, and the file does not name it any more.",
    Situation.FOREIGN: "A session of its name on the fleet's server was made by something else.",
    Situation.LOOP_HELD: "An agent of the loop runs, and the loop's position is in doubt.",
    Situation.LOOP_HELD_DEAD: "An agent of the loop died, and the loop's position is in doubt.",
    Situation.LOOP_COMPLETE: "The last phase is over: the agents of the loop were stopped.",
}

AROUND: Mapping[Around, str] = {
    Around.ENVIRONMENT: "A variable of `env_pass` has another value in the caller's shell than at its start.",
    Around.OVERRIDE: "The caller sets `AGENT_MODEL_<name>`.",
    Around.NO_WATCHDOG: "No watchdog runs.",
    Around.HUNG_WATCHDOG: "The watchdog is there and does not look any more.",
    Around.OLD_WATCHDOG: "The watchdog runs another version of the engine.",
    Around.FULL_DISK: "`log_dir` is full or read-only.",
    Around.NO_STATE: "`log_dir` was removed under the running fleet, and the watchdog has written it back.",
    Around.BROKEN_FILE: "agents.toml has a mistake.",
    Around.NO_FILE: "agents.toml is gone.",
}


def _row(up: Fate, up_name: Fate, restart_name: Fate, down_name: Fate, down: Fate) -> dict[Verb, Fate]:
    return dict(zip(Verb, (up, up_name, restart_name, down_name, down), strict=True))


_NEW = Fate(Told.STARTED, Pane.STARTED, Wished.UP, Conversation.NEW, "It is started.")
_FORGIVEN = replace(
    _NEW,
    conversation=Conversation.CONTINUED,
    text="It is started at once, as if new.",
    tallies=Tallies.FORGOTTEN,
)
_RUNS = Fate(Told.RUNNING, Pane.KEPT, Wished.UP, Conversation.GOES_ON, "It is left as it is.")
_REPLACED = Fate(
    Told.STARTED, Pane.REPLACED, Wished.UP, Conversation.CONTINUED, "It is stopped and started again."
)
_ENDED = Fate(
    Told.STOPPED, Pane.ENDED, Wished.DOWN, Conversation.KEPT, "It is stopped, and stays down until an `up`."
)
_CLEARED = replace(_ENDED, text="Its dead session is taken away, and it stays down until an `up`.")
_NOTHING = Fate(
    Told.NOTHING, Pane.NONE, Wished.DOWN, Conversation.NONE, "There is nothing to stop. It stays down."
)
_REFUSED = Fate(Told.REFUSED, Pane.KEPT, Wished.UP, Conversation.GOES_ON, "", code=2)

_FAILED = _row(_FORGIVEN, _FORGIVEN, _FORGIVEN, _CLEARED, _CLEARED)
_LIMITED = replace(_ENDED, window=Window.KEPT, text="It is stopped. Its window is kept.")
_LIMITED_GONE = replace(_LIMITED, text="Its dead session is taken away. Its window is kept.")
_LIMITED_NOW = replace(
    _FORGIVEN,
    window=Window.KEPT,
    text="It is started at once. Nothing is typed into it before its window ends.",
)
_THEIRS = Fate(
    Told.NOT_STARTED,
    Pane.KEPT,
    Wished.UP,
    Conversation.NONE,
    "The session is left alone. The verb names the program in it and whose it is.",
    code=1,
)
_LEFT_THEIRS = replace(
    _THEIRS,
    told=Told.NOTHING,
    wish=Wished.DOWN,
    code=0,
    text="The session is left alone and its owner is named. No agent of ours starts there.",
)
_HELD = Fate(
    Told.NOT_STARTED,
    Pane.NONE,
    Wished.UP,
    Conversation.KEPT,
    "It is not started. The verb says why the loop is held and how a person sets its position.",
    Tallies.FORGOTTEN,
    code=1,
)
_DONE = replace(
    _HELD,
    text="It is not started: the sequence is complete. `phase set` begins it again.",
    tallies=Tallies.NONE,
    code=0,
)

TABLE: Mapping[Situation, Mapping[Verb, Fate]] = {
    Situation.ABSENT: _row(_NEW, _NEW, _NEW, _NOTHING, _NOTHING),
    Situation.BACKOFF: _FAILED,
    Situation.FLAPPING: _FAILED,
    Situation.FATAL: _FAILED,
    Situation.LIMITED_ALIVE: _row(
        replace(_RUNS, window=Window.KEPT, text="It is left as it is. The verb says when its window ends."),
        replace(_RUNS, window=Window.KEPT, text="It is left as it is. The verb says when its window ends."),
        replace(_REPLACED, window=Window.KEPT, text="It is started anew. Its window stays shut."),
        _LIMITED,
        _LIMITED,
    ),
    Situation.LIMITED_DEAD: _row(
        Fate(
            Told.LIMITED,
            Pane.LATER,
            Wished.UP,
            Conversation.KEPT,
            "The verb says when its window ends. The watchdog starts it then.",
            Tallies.FORGOTTEN,
            Window.KEPT,
        ),
        _LIMITED_NOW,
        _LIMITED_NOW,
        _LIMITED_GONE,
        _LIMITED_GONE,
    ),
    Situation.PAUSED: _row(
        Fate(
            Told.PAUSED,
            Pane.NONE,
            Wished.PAUSED,
            Conversation.KEPT,
            "It stays paused. The verb says so.",
            Tallies.FORGOTTEN,
        ),
        replace(_FORGIVEN, text="Its pause is taken back, and it is started."),
        replace(_FORGIVEN, text="Its pause is taken back, and it is started."),
        _CLEARED,
        _CLEARED,
    ),
    Situation.FROZEN: _row(
        Fate(
            Told.PAUSED, Pane.KEPT, Wished.FROZEN, Conversation.GOES_ON, "It stays frozen. The verb says so."
        ),
        replace(_RUNS, text="Its processes go on from where they were held."),
        _REPLACED,
        _ENDED,
        _ENDED,
    ),
    Situation.FINISHED: _row(
        Fate(
            Told.FINISHED,
            Pane.NONE,
            Wished.UP,
            Conversation.NONE,
            "It stays finished. The verb says so, and that `up NAME` runs it again.",
            Tallies.FORGOTTEN,
        ),
        replace(_NEW, text="It runs again.", tallies=Tallies.FORGOTTEN),
        replace(_NEW, text="It runs again.", tallies=Tallies.FORGOTTEN),
        replace(_CLEARED, conversation=Conversation.NONE),
        replace(_CLEARED, conversation=Conversation.NONE),
    ),
    Situation.UNWATCHED: _FAILED,
    Situation.STRAY: _row(
        replace(_RUNS, told=Told.NAMED, text="It is left alone, and named with the command that stops it."),
        replace(_REFUSED, text="The file does not name it: nothing is done."),
        replace(_REFUSED, text="The file does not name it: nothing is done."),
        replace(_ENDED, text="It is stopped by its old name."),
        _ENDED,
    ),
    Situation.FOREIGN: _row(_THEIRS, _THEIRS, _THEIRS, _LEFT_THEIRS, _LEFT_THEIRS),
    Situation.LOOP_HELD: _row(
        _RUNS,
        _RUNS,
        replace(
            _RUNS,
            told=Told.NOT_STARTED,
            text="It could not be started again, so it is not stopped. The verb says why the loop is held.",
            code=1,
        ),
        _ENDED,
        _ENDED,
    ),
    Situation.LOOP_HELD_DEAD: _row(_HELD, _HELD, _HELD, _CLEARED, _CLEARED),
    Situation.LOOP_COMPLETE: _row(_DONE, _DONE, _DONE, _NOTHING, _NOTHING),
}

_LAST_GOOD = replace(_ENDED, text="It is stopped. The verb says that it uses the last good config.")
_NO_CONFIG = replace(_REFUSED, text="The verb names the mistake, and does nothing.")
_UNWRITTEN = replace(
    _REFUSED, code=1, text="What is wanted cannot be written, so nothing is done. The verb says why."
)

AROUND_TABLE: Mapping[Around, Mapping[Verb, Fate]] = {
    Around.ENVIRONMENT: _row(
        replace(_RUNS, text="It is left as it is, with the environment of its start."),
        replace(_RUNS, text="It is left as it is, with the environment of its start."),
        replace(_REPLACED, text="It has the caller's values. So has each heal of it."),
        _ENDED,
        _ENDED,
    ),
    Around.OVERRIDE: _row(
        replace(_RUNS, text="It is left as it is. The verb says that the override has no effect."),
        replace(_RUNS, text="It is left as it is. The verb says that the override has no effect."),
        replace(_REPLACED, text="It has the other model, for this one run. A heal takes the file's."),
        _ENDED,
        _ENDED,
    ),
    Around.NO_WATCHDOG: _row(
        replace(_RUNS, text="It is left as it is. A watchdog is started."),
        replace(_RUNS, text="It is left as it is. The verb says that no watchdog runs."),
        replace(_REPLACED, text="It is stopped and started again. The verb says that no watchdog runs."),
        _ENDED,
        _ENDED,
    ),
    Around.HUNG_WATCHDOG: _row(
        replace(_RUNS, text="It is left as it is. The watchdog is replaced, and the verb says so."),
        replace(_RUNS, text="The verb says that the watchdog hangs."),
        replace(_REPLACED, text="The verb says that the watchdog hangs."),
        _ENDED,
        replace(_ENDED, text="It is stopped, and the watchdog is ended by force."),
    ),
    Around.OLD_WATCHDOG: _row(
        replace(_RUNS, text="The verb says that the watchdog is another version."),
        replace(_RUNS, text="The verb says that the watchdog is another version."),
        replace(_REPLACED, text="The verb says that the watchdog is another version."),
        _ENDED,
        _ENDED,
    ),
    Around.FULL_DISK: _row(
        _UNWRITTEN,
        _UNWRITTEN,
        _UNWRITTEN,
        replace(_UNWRITTEN, text="A watchdog would bring it back, so nothing is done. The verb says why."),
        replace(
            _ENDED,
            wish=Wished.UP,
            code=1,
            text="It is stopped, with the watchdog. The verb says that this could not be recorded.",
        ),
    ),
    Around.NO_STATE: _row(_RUNS, _RUNS, _REPLACED, _ENDED, _ENDED),
    Around.BROKEN_FILE: _row(_NO_CONFIG, _NO_CONFIG, _NO_CONFIG, _LAST_GOOD, _LAST_GOOD),
    Around.NO_FILE: _row(_NO_CONFIG, _NO_CONFIG, _NO_CONFIG, _LAST_GOOD, _LAST_GOOD),
}

# What each change of the coarse word means. Each can follow each other one, because a look may come late.
EDGES: dict[tuple[State, State], str] = {
    (State.STOPPED, State.RUNNING): "brought up",
    (State.STOPPED, State.DEAD): "desired up, and not started yet",
    (State.STOPPED, State.FATAL): "desired up, and it can never start",
    (State.STOPPED, State.UNKNOWN): "cannot be looked at",
    (State.RUNNING, State.STOPPED): "taken down, or done",
    (State.RUNNING, State.DEAD): "died, exited or was stopped to be restarted",
    (State.RUNNING, State.FATAL): "its credentials are refused",
    (State.RUNNING, State.UNKNOWN): "its screen cannot be read, or tmux does not answer",
    (State.DEAD, State.RUNNING): "healed",
    (State.DEAD, State.STOPPED): "taken down while it was dead",
    (State.DEAD, State.FATAL): "a retry cannot succeed",
    (State.DEAD, State.UNKNOWN): "cannot be looked at",
    (State.FATAL, State.RUNNING): "fixed and reset",
    (State.FATAL, State.STOPPED): "reset while its desired state is down",
    (State.FATAL, State.DEAD): "reset, and about to be started",
    (State.FATAL, State.UNKNOWN): "reset, and cannot be looked at",
    (State.UNKNOWN, State.RUNNING): "read again",
    (State.UNKNOWN, State.STOPPED): "seen again, taken down",
    (State.UNKNOWN, State.DEAD): "seen again, dead",
    (State.UNKNOWN, State.FATAL): "seen again, beyond a retry",
}
