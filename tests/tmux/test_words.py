"""What a screen says and what it means: banners that are over, quoted, our own, or the agent's own words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.tmux.conftest import until

PUPPET = Path(__file__).with_name("puppet.py")
SCREENS = Path(__file__).parents[1] / "fixtures" / "screens" / "claude"
PLAIN = f"""
[backend.plain]
bin = "{sys.executable}"
flags = "{PUPPET}"
prompt_delivery = "ping"
queues_input = true
connect_delay = 0
active_re = "esc to interrupt"
limit_re = "hit your usage limit"
fatal_re = "cannot go on"
"""
CLAUDE = f"""
[backend.claude]
bin = "{sys.executable}"
flags = "{PUPPET}"
process_name = "{Path(sys.executable).resolve().name}"
"""


def agent(p, name: str, plan: dict, backend: str = "plain", more: str = "") -> str:
    """A puppet under that profile."""
    path = p.root / f"{name}.json"
    path.write_text(json.dumps(plan))
    env = f'PUPPET = "{path}", CLAUDE_CONFIG_DIR = "{p.root / name}"'
    return (
        f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "{backend}"\nwatch = "heal"\n'
        f"env = {{ {env} }}\n{more}\n"
    )


def ticks(p, count: int) -> None:
    """The watchdog has looked that often since."""
    heart = p.log_dir / "state" / "heartbeat"
    until(heart.exists)
    beats = {heart.stat().st_mtime_ns}
    until(lambda: beats.add(heart.stat().st_mtime_ns) or len(beats) > count, 60)


BANNER = "You have hit your usage limit, resets {+3}"


@pytest.mark.long
@pytest.mark.parametrize("answer", [[{"work": 1.0}, {"print": "done"}], [{"print": "done at once"}]])
def test_a_banner_whose_window_is_over_never_limits_again_while_it_stands_there(make, answer):
    """R153 T75: one probe; afterwards the old banner is among the last lines, and means nothing."""
    p = make("")
    p.write(PLAIN + agent(p, "one", {"start": [{"print": "$ go"}, {"print": BANNER}], "line": answer}))
    p.agents("up")
    until(lambda: p.events("agent.resumed", "one"), 40)
    for text in ("first", "second"):
        p.agents("send", "one", f"the {text} thing to do")
        ticks(p, 4)
    assert "hit your usage limit" in p.tmux("capture-pane", "-p", "-t", f"={p.prefix}one:")
    assert len(p.events("agent.limited", "one")) == 1
    assert len(p.events("agent.probed", "one")) == 1
    until(lambda: p.row("one")["detail"] == "IDLE")  # its answer takes a second


@pytest.mark.long
def test_a_banner_said_anew_limits_anew(make):
    """R154: the same words below the probe are a new limit."""
    p = make("")
    again = "You have hit your usage limit"
    p.write(PLAIN + agent(p, "one", {"start": [{"print": again}], "line": [{"print": again}]}))
    p.agents("up")
    until(lambda: len(p.events("agent.probed", "one")) >= 3, 60)
    assert len(p.events("agent.limited", "one")) >= 3
    assert not p.events("agent.resumed", "one")


def test_quoted_banners_and_our_own_words_limit_nobody_without_any_profile(make):
    """I6 T70."""
    p = make("")
    quotes = [
        {"print": "> You have hit your usage limit"},
        {"print": 'the log says "You have hit your usage limit", an hour ago'},
        {"print": "grep found `hit your usage limit` in two files"},
    ]
    real = [{"print": '{"error": {"message": "You have hit your usage limit"}}'}]
    p.write(PLAIN + agent(p, "one", {"start": quotes}) + agent(p, "two", {"start": real}))
    p.agents("up")
    p.agents("send", "one", "what do you do when you hit your usage limit?")
    until(lambda: p.events("agent.limited", "two"), 30)
    ticks(p, 6)
    assert not p.events("agent.limited", "one")


@pytest.mark.parametrize("key", ["limit_re", "fatal_re"])
def test_a_pattern_that_takes_our_own_probe_for_a_banner_is_refused(make, key):
    """T70: the probe must not arm its own window."""
    p = make(f"[backend.x]\nbin = \"x\"\n{key} = 'pause|limit'\n")
    said = p.agents("validate", code=2)
    assert f"backend.x.{key}" in said
    assert "The pause is over" in said


TURN = "❯ go on\n\n{}\n\n✻ Baked for 1s\n\n" + "─" * 60 + "\n❯\u00a0\n" + "─" * 60 + "\n  ? for shortcuts\n"
WEDGED = "● API Error: 400 messages.3.content.0: `thinking` blocks in the latest message cannot be modified."
LIMITED = "  ⎿  You've hit your session limit · resets 3am"
REFUSED = "● There's an issue with the selected model (x). It may not exist or you may not have access to it."
PROMPT = {"hook": {"hook_event_name": "UserPromptSubmit", "prompt": "go on"}}
STOP = {"hook": {"hook_event_name": "Stop"}}


@pytest.mark.long
def test_what_an_agent_says_harms_it_only_where_its_cli_does_not_deny_it(make):
    """I6: claude draws an answer that begins like one of its own notices exactly as it draws the notice."""
    p = make("")
    mates = 'account = "team"'
    text = CLAUDE
    for name, words in (("wedged", WEDGED), ("limited", LIMITED), ("refused", REFUSED)):
        shown = {"draw": TURN.format(words)}
        text += agent(p, f"says-{name}", {"start": [PROMPT, shown, STOP]}, "claude", mates)
        text += agent(p, f"is-{name}", {"start": [shown]}, "claude")
    text += agent(p, "mate", {"start": [PROMPT, {"draw": TURN.format("● Done.")}, STOP]}, "claude", mates)
    p.write(text)
    p.agents("up", code=None)  # some are not well
    until(lambda: p.events("agent.wedged", "is-wedged"), 40)
    until(lambda: p.row("is-limited")["detail"] == "LIMITED", 40)
    until(lambda: p.row("is-refused")["detail"] == "FATAL", 40)
    ticks(p, 4)
    for name in ("says-wedged", "says-limited", "says-refused", "mate"):
        assert p.row(name)["detail"] == "IDLE", name
        assert len(p.events("agent.started", name)) == 1
    # while the words still stand there: a person has dealt with it
    p.agents("reset", "is-refused")
    until(lambda: p.row("is-refused")["detail"] == "IDLE")
    ticks(p, 4)
    assert p.row("is-refused")["detail"] == "IDLE"
    assert REFUSED[:40] in p.tmux("capture-pane", "-p", "-t", f"={p.prefix}is-refused:")


@pytest.mark.parametrize("screen", ["30-limit-five-hour", "c325-limit-weekly-menu"])
def test_the_open_menu_of_a_limit_is_no_work(make, screen):
    """I5: claude's registry says `waiting` while it is open."""
    p = make("")
    shown = {"draw": (SCREENS / f"{screen}.txt").read_text().replace("\n", "\r\n")}
    p.write(CLAUDE + agent(p, "one", {"start": [shown, {"registry": "waiting"}]}, "claude"))
    p.agents("up")
    until(lambda: p.events("agent.limited", "one"), 40)
    ticks(p, 12)
    assert len(p.events("agent.limited", "one")) == 1
    assert not p.events("agent.resumed", "one")
    assert p.row("one")["detail"] == "LIMITED"
