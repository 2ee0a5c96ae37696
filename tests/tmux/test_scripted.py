"""The scripted agent in real panes: what is typed arrives, what the script says happens."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.backends.screen_reader import read
from fleet.config.backend_tables import profile_values, shipped
from fleet.core.model import Backend
from fleet.core.seen import ScreenState
from fleet.host import procfs
from fleet.scripted_agent.outside import KINDS
from tests.deadlines import patience
from tests.tmux.conftest import until

pytestmark = pytest.mark.tmux
ROOT = Path(__file__).parents[2]


class Player:
    """One scripted agent in a pane, and what it has written down."""

    def __init__(self, floor, root, session, script, kickoff, backend, where, env):
        self.floor, self.session = floor, session
        self.backend = Backend(name=backend, **profile_values(backend, shipped(backend)))
        self.record = root / f"rec-{session}"
        path = root / f"{session}.toml"
        path.write_text(script)
        exports = {
            "AO_ENGINE": str(ROOT),
            "AO_PYTHON": sys.executable,
            "AO_SCRIPT": str(path),
            "AO_SCRIPT_RECORD": str(self.record),
            "AO_AGENT": session,
            **env,
        }
        lines = [f"export {k}={shlex.quote(v)}" for k, v in exports.items()]
        words = [self.backend.bin, self.backend.flags, *([shlex.quote(kickoff)] if kickoff else [])]
        floor.start(session, "\n".join([*lines, f"cd {where or root}", f"exec {' '.join(words)}"]))

    def screen(self):
        return self.floor.screen(self.session)

    def reading(self):
        return read(self.backend, self.screen(), now=time.time(), zone="UTC")

    def reaches(self, state):
        return until(lambda: (r := self.reading()).state is state and r)

    def shows(self, text):
        return until(lambda: text in self.screen())

    def type(self, text):
        """As the supervisor does: paste, see it stand there, then submit."""
        ref = self.floor.view(self.session).ref
        assert self.floor.server.paste(ref, text) == ""
        head = text.split("\n")[0][:60]
        until(lambda: head in self.screen())
        pasted = time.monotonic()
        until(lambda: time.monotonic() > pasted + 0.2)  # the gap itself is the point
        assert self.floor.server.press(ref, [self.backend.submit_key]) == ""

    def press(self, *keys):
        assert self.floor.server.press(self.floor.view(self.session).ref, keys) == ""

    def heard(self, *kinds):
        try:
            lines = (self.record / "messages.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        records = [json.loads(line) for line in lines]
        return [r["text"] for r in records if not kinds or r["kind"] in kinds]

    def ended(self):
        until(lambda: self.floor.view(self.session).dead)
        self.floor.server.reap()
        told = lambda v: v.exit_code is not None or v.exit_signal is not None  # noqa: E731
        return until(lambda: (v := self.floor.view(self.session)) and told(v) and v)


@pytest.fixture
def play(floor, tmp_path):
    def start(script, kickoff="", *, session="a-one", backend="scripted", where=None, **env):
        return Player(floor, tmp_path, session, script, kickoff, backend, where, env)

    return start


BOTH = pytest.mark.parametrize("backend", ["scripted", "scripted-tui"])
HOSTILE = "quotes ' \" $(touch pwned) `x` #(id) ;\nsecond line;\n日本 \\ %H trailing;"


def test_the_kickoff_arrives_as_an_argument_to_the_byte(play):
    """R046."""
    agent = play('steps = [{ say = "ok" }]', HOSTILE)
    agent.reaches(ScreenState.IDLE)
    assert agent.heard("kickoff") == [HOSTILE]


@BOTH
def test_what_is_typed_is_heard_exactly_once_and_to_the_byte(play, backend):
    """R124, I11."""
    agent = play('idle = [{ say = "heard it" }]', "go" if backend == "scripted" else "", backend=backend)
    agent.reaches(ScreenState.IDLE)
    agent.type(HOSTILE)
    until(lambda: agent.heard("message"))
    assert agent.heard("message") == [HOSTILE]
    assert agent.reading().draft == ""


def test_enter_in_the_same_breath_as_the_text_is_a_line_break(play):
    """K3."""
    agent = play("", "go")
    agent.reaches(ScreenState.IDLE)
    agent.press("a", "b", "Enter")
    until(lambda: agent.reading().draft == "ab")
    assert agent.heard("message") == []
    shown = time.monotonic()
    until(lambda: time.monotonic() > shown + 0.2)
    agent.press("Enter")
    until(lambda: agent.heard("message") == ["ab"])


@BOTH
def test_work_is_seen_as_work_and_its_end_as_idle(play, backend):
    script = 'steps = [{ work = 2 }, { say = "built" }]'
    agent = play(script, "go" if backend == "scripted" else "", backend=backend)
    if backend == "scripted-tui":
        agent.reaches(ScreenState.IDLE)
        agent.type("go")
    agent.reaches(ScreenState.WORKING)
    agent.reaches(ScreenState.IDLE)
    assert "built" in agent.screen()


def test_one_kind_queues_what_is_typed_while_it_works_and_the_other_loses_it(play):
    script = 'steps = [{ work = 3 }]\nidle = [{ say = "answer to {message}" }]'
    loses = play(script, session="a-two", backend="scripted-tui")
    loses.reaches(ScreenState.IDLE)
    loses.type("go")
    loses.reaches(ScreenState.WORKING)
    loses.type("meanwhile")
    queues = play(script, "go")  # only now: its work must not be over before it is typed into
    queues.reaches(ScreenState.WORKING)
    queues.type("meanwhile")
    queues.shows("answer to meanwhile")
    loses.reaches(ScreenState.IDLE)
    assert queues.heard("queued") == ["meanwhile"]
    assert loses.heard("lost") == ["meanwhile"]
    assert "answer" not in loses.screen()


@BOTH
def test_a_limit_refuses_until_its_window_is_over_and_then_goes_on(play, backend):
    """R151, R153."""
    lasts = round(patience(2))  # long enough to be typed into before it is over, however slow this machine is
    banner = "You've hit your session limit · resets {reset}"
    script = f'start = [{{ limit = "{banner}", for = {lasts} }}, {{ say = "on it" }}]'
    agent = play(script, "go" if backend == "scripted" else "", backend=backend)
    reading = agent.reaches(ScreenState.LIMITED)
    assert 0 <= reading.until - time.time() <= lasts + 1.5
    agent.type("too early")
    until(lambda: agent.heard("refused"))
    until(lambda: time.time() > reading.until)
    agent.type("continue")
    agent.shows("on it")
    assert agent.heard("refused") == ["too early"]


@pytest.mark.parametrize(
    ("step", "state"),
    [
        ("{ retry = 60 }", ScreenState.RETRYING),
        ("{ error = true }", ScreenState.ERROR),
        ("{ auth = true }", ScreenState.AUTH),
        ("{ context = true }", ScreenState.CONTEXT),
        ("{ fatal = true }", ScreenState.WEDGED),
        ('{ ask = "Do you trust this?" }', ScreenState.ASKING),
        ("{ quote = '''You've hit your session limit · resets 3pm''' }", ScreenState.IDLE),
    ],
)
def test_each_trouble_is_read_for_what_it_is_on_a_real_screen(play, step, state):
    agent = play(f"steps = [{step}]", "go")
    agent.reaches(state)


def test_a_dialog_with_a_dangerous_default_ends_the_agent_on_enter(play):
    """I14."""
    script = (
        'start = [{ ask = "Do you trust this?", options = ["Yes", "No, exit"], default = 2 },\n'
        '{ if = "{answer}", has = "2", then = [{ exit = 1 }] }]'
    )
    careless = play(script, "go")
    careless.reaches(ScreenState.ASKING)
    careless.press("Enter")
    assert careless.ended().exit_code == 1
    careful = play(script, "go", session="a-two")
    careful.reaches(ScreenState.ASKING)
    careful.press("1")
    careful.reaches(ScreenState.IDLE)


def test_it_ends_as_the_script_says(play):
    ends = {
        "exit = 7": (7, None),
        'die = "KILL"': (None, 9),
        'die = "SEGV"': (None, 11),
        "exit = true": (0, None),
    }
    agents = {
        play(f"steps = [{{ {end} }}]", "go", session=f"a-{n}"): want
        for n, (end, want) in enumerate(ends.items())
    }
    for agent, (code, signum) in agents.items():
        view = agent.ended()
        assert (view.exit_code if not signum else None, view.exit_signal or None) == (code, signum)


def test_an_unknown_flag_ends_it_at_once_and_says_so(play):
    agent = play("", "--frobnicate")
    assert agent.ended().exit_code == 2
    words = agent.floor.raw("capture-pane", "-p", "-S", "-", "-t", f"={agent.session}:")
    assert "unknown option '--frobnicate'" in words  # tmux's own last line pushes the first one into history


def test_it_leaves_a_bare_shell_behind(play):
    """I8."""
    agent = play("steps = [{ shell = true }]", "go", PS1="$ ")
    agent.reaches(ScreenState.SHELL)
    pid = agent.floor.view(agent.session).ref.pid
    assert os.path.basename(os.readlink(f"/proc/{pid}/exe")) in {"sh", "dash", "bash"}


def test_the_system_lists_it_by_the_name_it_gives_itself(play):
    """R052."""
    agent = play('steps = [{ wait_message = true }, { name = "claude" }, { say = "renamed" }]', "go")
    agent.reaches(ScreenState.IDLE)
    comm = Path(f"/proc/{agent.floor.view(agent.session).ref.pid}/comm")
    assert comm.read_text().strip() == "scripted-agent"
    agent.type("now")
    agent.shows("renamed")
    assert comm.read_text().strip() == "claude"


def test_all_eight_kinds_of_children_live_and_carry_the_run(play):
    """P1, P2, I29."""
    agent = play("steps = [{ spawn = true }]", "go")
    note = agent.record / "children"
    until(lambda: note.exists() and len(note.read_text().splitlines()) == len(KINDS) == 8)
    born = dict(line.split() for line in note.read_text().splitlines())
    assert set(born) == set(KINDS)
    run = agent.floor.view(agent.session).ref.run
    for pid in born.values():
        assert f"AO_RUN_ID={run}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    assert procfs.table()


def test_a_hung_agent_reads_nothing(play):
    agent = play('steps = [{ say = "now" }, { hang = true }]', "go")
    agent.shows("now")
    agent.press("x")
    agent.press("y")
    until(lambda: "now" in agent.screen())
    assert not (agent.record / "bytes").exists()


def test_an_idle_agent_writes_nothing_to_its_screen(play):
    """T78: whoever looks at a pane's activity sees that nothing happens."""
    script = 'steps = [{ say = "done" }, { wait_message = true }, { work = 1 }, { say = "worked" }]'
    idle, other = (play(script, "go", session=f"a-{n}") for n in ("one", "two"))
    counters = Path(f"/proc/{idle.floor.view(idle.session).ref.pid}/io")
    for agent in (idle, other):
        agent.shows("done")
        agent.reaches(ScreenState.IDLE)
    before = counters.read_text()
    other.type("go on")  # a second passes, with another agent at work
    other.shows("worked")
    assert [line for line in counters.read_text().split("\n") if "wchar" in line] == [
        line for line in before.split("\n") if "wchar" in line
    ]


def test_a_flood_and_a_new_size_leave_a_readable_screen(play):
    agent = play('steps = [{ flood = 20000 }, { say = "after the flood" }]', "go")
    agent.shows("after the flood")
    agent.reaches(ScreenState.IDLE)
    agent.floor.raw("resize-window", "-t", f"={agent.session}:", "-x", "90", "-y", "20")
    agent.shows("after the flood")
    agent.type("still there?")
    agent.shows("Heard: still there?")


def test_escape_stops_the_work(play):
    """I13: what a careless supervisor would do to an agent shows."""
    agent = play('steps = [{ work = 600 }, { say = "never" }]', "go")
    agent.reaches(ScreenState.WORKING)
    agent.press("Escape")
    agent.shows("Interrupted")
    agent.reaches(ScreenState.IDLE)
    assert "never" not in agent.screen()


def test_a_message_may_tell_it_what_to_do(play):
    agent = play("", "go")
    agent.reaches(ScreenState.IDLE)
    agent.type('now %%[{"say": "told"}, {"exit": 4}]%%')
    assert agent.ended().exit_code == 4


def test_a_builder_and_a_reviewer_work_through_git(play, tmp_path):
    """R125: a whole phase, a limit on the way, and nothing between them but commits."""
    git = ["git", "-c", "init.defaultBranch=main"]
    repo = tmp_path / "repo"
    subprocess.run([*git, "init", "-q", str(repo)], check=True)
    part = str(ROOT / "tests/fixtures/scripts/builder.toml")
    builder = play("", "Start phase one", where=repo, AO_SCRIPT=part)
    reviewer = play(
        "steps = [{ wait_commit = '^claim', old = true, timeout = 60 }, { work = 0.2 },\n"
        "{ write = 'REVIEW.md', text = 'PASS' }, { commit = 'review(one): PASS' }, { say = 'reviewed' }]",
        "go", session="a-two", where=repo,
    )  # fmt: skip
    reading = builder.reaches(ScreenState.LIMITED)
    until(lambda: time.time() > reading.until)
    builder.type("continue")
    reviewer.shows("reviewed")
    builder.shows("Phase one ended: review(one): PASS")
    log = subprocess.run(
        [*git, "-C", str(repo), "log", "--format=%s"], capture_output=True, text=True, check=True
    )
    assert log.stdout.split("\n")[:3] == ["status(one): done", "review(one): PASS", "claim(one): built it"]
