"""Real agents under the real watchdog: they come up, are written to, limited, killed, replaced, left alone.

Ten messages of each kind here; AO_LIVE_MESSAGES=100 for more.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crew import Crew
from drill import WAYS, said
from rig import installed

pytestmark = [pytest.mark.live, pytest.mark.slow]
MANY = int(os.environ.get("AO_LIVE_MESSAGES", "10"))
CLIS = list(WAYS)


@pytest.fixture
def crew(tmp_path):
    made = []

    def make(cli: str, backend: str = "") -> Crew:
        for name in CLIS:
            why = installed(name)
            if why.startswith("no ") or not shutil.which("tmux"):
                pytest.skip(f"{name}: {why if why.startswith('no ') else 'no tmux'}")
        made.append(Crew(cli, tmp_path, backend=backend).__enter__())
        return made[-1]

    yield make
    for one in made:
        one.__exit__()


@pytest.mark.parametrize("cli", CLIS)
def test_it_comes_up_unattended_and_takes_every_message_exactly_once_idle_or_busy(crew, cli):
    """R136, R175, I11."""
    one = crew(cli)
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    for n in range(MANY):
        one.verb("send", "a", f"message {n:03} while idle")
        one.until(lambda n=n: len(one.prompts(f"message {n:03} while idle")) == 1, f"message {n} arrived")
    one.settles()
    slow = {"ttfb": 2, "text": "it takes a while"}
    one.server.script.control({"sticky": slow})
    one.verb("send", "a", "now be slow")
    for n in range(MANY):
        one.verb("send", "a", f"message {n:03} while busy")
    one.server.script.control({"sticky": None})
    one.settles(240)
    heard = "\n".join(text for row in one.prompts() for text in row["said"][-1:])
    newest = max(one.prompts(), key=lambda row: len(row["said"]))
    story = "\n".join(newest["said"])
    for n in range(MANY):
        assert story.count(f"message {n:03} while idle") == 1, heard
        assert story.count(f"message {n:03} while busy") == 1, heard
    assert not one.events("agent.died")
    assert [event["reason"] for event in one.events("message.failed")] == []
    receipts = [event["reason"] for event in one.events("message.confirmed")]
    if cli == "opencode":  # once there is a conversation, its server takes the words and is asked for them
        posted = [r for r in receipts if "its server has it" in r or "the CLI reported it" in r]
        assert len(posted) >= 2 * MANY, receipts


def test_a_server_that_hangs_when_a_message_is_posted_gets_it_exactly_once(crew):
    """I11: an answer that never came is looked up, not repeated, and nothing is typed on top."""
    one = crew("opencode")
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    one.verb("send", "a", "the first by its server")
    one.settles()
    os.kill(one.pid(), signal.SIGSTOP)
    try:
        one.verb("send", "a", "said into a silence", "--timeout", "9", check=False)
    finally:
        os.kill(one.pid(), signal.SIGCONT)
    one.until(lambda: len(one.prompts("said into a silence")) == 1, "it arrived")
    one.settles()
    one.verb("send", "a", "and one more")
    one.until(lambda: len(one.prompts("and one more")) == 1, "the next arrived")
    story = "\n".join(max(one.prompts(), key=lambda row: len(row["said"]))["said"])
    assert story.count("said into a silence") == 1
    assert not one.events("agent.healed")


def test_codex_says_itself_when_a_turn_is_over(crew):
    """Notified for this run only: the user's own files stay as they are."""
    one = crew("codex")
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    spool = one.root / "log" / "state" / "signals" / f"{one.prefix}a"
    one.tmux("kill-session", "-t", f"={one.prefix}watchdog")
    one.tmux("send-keys", "-t", f"={one.prefix}a:", "-l", "one more turn")
    time.sleep(0.5)
    one.tmux("send-keys", "-t", f"={one.prefix}a:", "Enter")
    one.until(lambda: list(spool.glob("*.notify")), "codex ran our program")
    told = [json.loads(path.read_text()) for path in spool.glob("*.notify")]
    mine = (one.root / "log" / "state" / "a.id").read_text().strip()
    one.until(
        lambda: mine in {json.loads(path.read_text())["thread-id"] for path in spool.glob("*.notify")},
        f"and told of its own thread: {told}",
    )
    assert "notify" not in (one.root / ".codex" / "config.toml").read_text()


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_a_limit_is_waited_out_and_the_work_goes_on_afterwards(crew, cli):
    """R151-R156, I5."""
    one = crew(cli)
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    reset = int(time.time() + 80) // 60 * 60  # banners name minutes: this one is exact
    unified = "anthropic-ratelimit-unified"
    headers = {f"{unified}-status": "rejected", f"{unified}-reset": str(reset)}
    headers[f"{unified}-representative-claim"] = "five_hour"
    error = {"type": "rate_limit_error", "message": "no more"}
    if cli == "codex":
        used = "x-codex-primary"
        headers = {
            f"{used}-used-percent": "100",
            f"{used}-window-minutes": "300",
            f"{used}-reset-at": str(reset),
        }
        error = {"type": "usage_limit_reached", "message": "no more", "plan_type": "plus", "resets_at": reset}
    one.server.script.control({"queue": [{"status": 429, "headers": headers, "error": error}]})
    one.verb("send", "a", "one more thing")
    one.until(lambda: one.detail() == "LIMITED", "limited")
    window = one.events("agent.limited")[-1]
    asked = len(one.prompts())
    one.until(lambda: len(one.prompts()) > asked, "asked again after the window", 120)
    assert max(row["at"] for row in one.prompts()) >= reset
    one.settles()
    assert not one.events("agent.healed"), window
    assert len(one.events("agent.started")) == 1


@pytest.mark.parametrize("cli", CLIS)
def test_killed_it_comes_back_with_its_conversation(crew, cli):
    """R077, I18, T38."""
    one = crew(cli)
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    one.verb("send", "a", "remember the word heliotrope")
    one.settles()
    one.until((one.root / "log" / "state" / "a.id").exists, "its conversation is known")
    was = one.pid()
    os.kill(was, signal.SIGKILL)
    one.until(lambda: one.pid() not in {0, was}, "started again")
    one.settles()
    one.verb("send", "a", "what was the word")
    one.until(lambda: one.prompts("what was the word"), "asked")
    (row,) = one.prompts("what was the word")
    assert any("heliotrope" in text for text in row["said"])


def test_replaced_by_another_backend_it_is_put_back(crew):
    """R091, T13."""
    one = crew("claude", backend="[backend.codex]\nstall_idle = 300")  # configured, therefore known
    one.verb("up", AGENT_BACKEND_a="codex")
    one.until(lambda: one.command() == "claude", "claude runs again", 120)
    one.settles()
    assert one.events("agent.mismatched") or one.events("agent.healed")


def test_idle_for_too_long_it_is_rebooted(crew):
    """R094."""
    one = crew("claude", backend="[backend.claude]\nstall_idle = 6\nstart_grace = 5")
    one.verb("up")
    one.until(lambda: len(one.events("agent.started")) == 2, "rebooted after the stall", 120)
    assert one.events("agent.stalled")


def test_asking_for_permission_it_is_left_alone(crew):
    """I14: nothing is typed, nothing is pressed, nobody is rebooted."""
    flags = "[backend.claude]\nflags = '--permission-mode default'\nstall_idle = 8"
    one = crew("claude", backend=flags)
    one.verb("up")
    one.settles()
    one.verb("send", "a", "dare " + said(tool=WAYS["claude"].ask_tool))
    one.until(lambda: one.detail() == "ASKING", "asking")
    one.until(lambda: "Do you want to proceed?" in one.screen(), "the question is drawn")
    question, asked = one.screen().partition("Do you want")[2], len(one.prompts())  # a bullet above it blinks
    one.verb("send", "a", "are you there", "--timeout", "5", check=False)
    asking = time.monotonic()
    one.until(lambda: time.monotonic() - asking > 15 or one.detail() != "ASKING", "a while has passed")
    assert one.detail() == "ASKING"
    assert one.screen().partition("Do you want")[2] == question
    assert len(one.prompts()) == asked
    assert len(one.events("agent.started")) == 1
    assert "are you there" not in json.dumps(one.prompts())
