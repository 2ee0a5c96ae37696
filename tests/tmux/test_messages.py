"""Messages are documents: listed with what became of them, put down without waiting, taken back in time."""

from __future__ import annotations

import pytest

from tests.tmux.project import until

pytestmark = pytest.mark.tmux

FLEET = """
[[agent]]
name = "one"
kind = "persistent"
backend = "scripted"
prompt = "Begin."
"""


@pytest.fixture
def fleet(make):
    p = make(FLEET)
    p.agents("up")
    return p


def listed(p, *names):
    return p.json("messages", *names)["messages"]


def texts(p):
    return [m["text"] for m in p.received("one") if m["kind"] in {"message", "queued"}]


def test_a_message_put_down_for_later_is_listed_until_it_has_its_receipt(fleet):
    said = fleet.json("send", "one", "do it when you can", "--later")
    receipt = said["receipts"]["one"]
    assert (said["ok"], receipt["state"]) == (True, "queued")
    until(lambda: [m["state"] for m in listed(fleet) if m["id"] == receipt["id"]] == ["confirmed"])
    assert texts(fleet) == ["do it when you can"]
    shown = fleet.agents("messages", "one")
    assert receipt["id"] in shown
    assert "confirmed" in shown


def test_without_a_watchdog_a_message_waits_and_the_next_watchdog_delivers_it_once(fleet):
    fleet.agents("down", "watchdog")
    fleet.agents("send", "one", "said to an empty house", "--later")
    assert [m["state"] for m in listed(fleet, "one")] == ["queued"]
    fleet.agents("up")
    until(lambda: [m["state"] for m in listed(fleet, "one")] == ["confirmed"])
    assert texts(fleet) == ["said to an empty house"]


def test_what_was_not_delivered_in_time_is_taken_back_and_never_said(make):
    p = make(FLEET)
    script = p.script("asks", 'start = [{ ask = "May I?", options = ["yes", "no"] }]')
    p.write(FLEET + f'env = {{ AO_SCRIPT = "{script}" }}\n')
    p.agents("up", "--no-wait", code=None)
    said = p.json("send", "one", "too late", "--timeout", "2", code=1)
    assert said["receipts"]["one"]["ok"] is False
    until(lambda: [m["state"] for m in listed(p, "one")] == ["withdrawn"])
    assert [e["reason"] for e in p.events("message.withdrawn")]


def test_what_its_cli_cannot_be_given_is_refused_at_once_and_not_put_down(fleet):
    said = fleet.json("send", "one", "a\x1bb", code=1)
    assert said["receipts"]["one"]["state"] == "failed"
    assert listed(fleet) == []
