"""Real agents that say what their CLIs say of trouble: nobody is harmed, and a true limit still limits."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crew import Crew
from drill import WAYS, limit
from rig import installed

pytestmark = [pytest.mark.live, pytest.mark.slow]
HARMFUL = ("agent.limited", "agent.wedged", "agent.failed_for_good", "agent.stopped", "agent.healed")
WORDS = (
    "API Error: 400 messages.3.content.0: `thinking` blocks in the latest message cannot be modified.",
    "You've hit your session limit · resets 3am",
    "There's an issue with the selected model (x). It may not exist or you may not have access to it.",
    "Please run /login · API Error: 403 your account does not have access",
    "■ You've hit your usage limit. Try again at 4:30 AM.",
    "The log has two lines:\n\n⎿ You've hit your weekly limit · resets 3am\n\n⎿ You've hit your weekly limit",
)


@pytest.mark.parametrize("cli", list(WAYS))
def test_what_an_agent_says_does_it_no_harm_and_a_true_limit_still_limits(tmp_path, cli):
    """I6."""
    for name in WAYS:
        why = installed(name)
        if why.startswith("no ") or not shutil.which("tmux"):
            pytest.skip(f"{name}: {why if why.startswith('no ') else 'no tmux'}")
    with Crew(cli, tmp_path) as one:
        one.verb("up")
        one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
        one.settles()
        for n, words in enumerate(WORDS):
            one.server.script.control({"queue": [{"text": words}]})
            one.verb("send", "a", f"question {n:02}")
            one.until(lambda n=n: len(one.prompts(f"question {n:02}")) == 1, f"question {n} arrived")
            head = words.split("\n")[0][:30]
            one.until(lambda head=head: head in " ".join(one.screen().split()), f"it says {head!r}")
            heard = one.log_beats(8)
            assert not [e for kind in HARMFUL for e in one.events(kind)], (words, heard)
            one.settles()
        if cli == "opencode":  # it retries a limit by itself
            return
        one.server.script.control({"queue": [limit(cli)] * 3})
        one.verb("send", "a", "one more thing")
        one.until(lambda: one.detail() == "LIMITED", "limited")
        one.log_beats(8)
        assert len(one.events("agent.started")) == 1
        assert [event["reason"] for event in one.events("agent.resumed")] == []
