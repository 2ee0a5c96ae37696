"""What the live view shows, without a screen: words, widths, order, colours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.model import Price
from fleet.core.words import Detail, State
from fleet.extras.captions import STORY, caption
from fleet.extras.top import cells
from fleet.extras.top.widgets import safe, screen_text
from fleet.tokens.price import PriceBook
from fleet.verbs.top import summed
from tests.unit.test_top import NOW, row

AGES = [(-5, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h00"), (35_999, "9h59"), (36_000, "10h"),
        (172_799, "47h"), (172_800, "2d"), (40_000_000, "462d")]  # fmt: skip
FIGURES = [(None, ""), (0, "0"), (999, "999"), (1000, "1k"), (1_234_567, "1.23M"), (2_500_000_000, "2.5G")]


@pytest.mark.parametrize(("seconds", "text"), AGES)
def test_ages_are_short(seconds, text):
    assert cells.ago(seconds) == text


@pytest.mark.parametrize(("number", "text"), FIGURES)
def test_figures_are_short(number, text):
    assert cells.count(number) == text


@given(st.integers(1, 300), st.booleans(), st.booleans(), st.text(max_size=60))
def test_the_columns_never_need_more_room_than_there_is(width, used, healed, name):
    rows = [row(name, restarts=int(healed)), row("b")]
    columns = cells.fitting(width, rows, {"b": (5, 1.0)} if used else {})
    titles = [c.title for _, c in columns]
    assert titles[:3] == ["name", "state", "for"], "what matters most is never dropped"
    assert titles[-1] == "why"
    if width >= 50:
        assert sum(size + cells.GAP for size, _ in columns) <= width + cells.GAP


def test_a_column_in_which_nobody_has_anything_is_not_shown():
    wide = [c.title for _, c in cells.fitting(300, [row("a", phase="", model="")], {})]
    assert wide == ["name", "state", "for", "why"]


@pytest.mark.parametrize("detail", list(Detail))
def test_every_detail_has_a_sign_and_a_style(detail):
    shown = cells.cells(row("a", detail), NOW, {})
    assert shown["state"].text.endswith(f" {detail}")
    assert shown["state"].style


@pytest.mark.parametrize("state", [State.DEAD, State.FATAL, State.UNKNOWN])
def test_what_is_wrong_looks_wrong_whatever_the_detail(state):
    assert cells.cells(row("a", "WORKING", state), NOW, {})["state"].style == "bad"


def test_a_word_from_a_newer_engine_is_shown_and_not_refused():
    shown = cells.cells(row("a", "DANCING", "MERRY"), NOW, {})
    assert shown["state"].text == "! DANCING"


def test_a_limit_counts_down():
    assert cells.cells(row("a", until=NOW + 90), NOW, {})["why"].text.startswith("1m left · ")
    assert "left" not in cells.cells(row("a", until=NOW - 90), NOW, {})["why"].text


def test_drift_and_waiting_messages_are_said():
    text = cells.cells(row("a", drift=["model"], messages=2), NOW, {})["why"].text
    assert "2 to be typed" in text
    assert "differs from the file: model" in text


def test_problems_come_first_and_the_rest_keeps_its_order():
    rows = [row("a"), row("b", "IDLE", "DEAD"), row("c"), row("d", "ASKING"), row("e", "UNKNOWN", "UNKNOWN")]
    assert [r["name"] for r in cells.ordered(rows)] == ["d", "b", "e", "a", "c"]


def test_the_headline_counts_trouble_before_it_is_cut():
    details = ["IDLE", "IDLE", "WORKING", "ASKING", "DANCING"]
    facts = {
        "agents": [row(str(n), detail) for n, detail in enumerate(details)],
        "watchdog": {"state": "running"},
        "project": {"prefix": "p-"},
    }
    counted = [cell.text for cell in cells.headline(facts, "07:20") if cell.text.strip()][4:]
    assert counted == ["! 1 asking", "! 1 dancing", "○ 2 idle", "● 1 working"]


@given(st.text())
def test_a_screen_can_do_nothing_but_colour(text):
    for line in text.split("\n"):
        kept = cells.words(safe(line)) if "\x1b" not in safe(line) else ""
        assert kept.isprintable()
    shown = screen_text(text, 10)
    assert shown.plain.replace("\n", "").isprintable()
    assert len(shown.plain.split("\n")) <= 10


def test_a_screen_keeps_its_colours_and_loses_links_titles_and_cursor_moves():
    raw = "\x1b[31m\nred\n\x1b[0m\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[5;5H[bold]end\x1b[4:3mcurly\n\n"
    shown = screen_text(raw, 2)
    assert shown.plain == "red\nlink[bold]endcurly"
    colours = {shown.plain[s.start : s.end]: s.style for s in shown.spans}
    assert colours["red"].color.number == 1, "begun on a line that is not shown any more"
    assert colours["curly"].underline
    assert not any(s.style.link for s in shown.spans)


def test_money_is_unknown_as_soon_as_a_part_of_it_is():
    column = {"models": {"known": {"input": 4, "output": 1}}}
    records = [
        {"agents": {"a": column, "b": column, "c": None}, "shared": column},
        {"agents": {"a": column, "b": {"models": {"mystery": {"input": 1}}}}},
    ]
    prices = PriceBook([Price("known", 100_000.0, 600_000.0)], library=False)
    assert summed(records, prices) == {"a": (10, 2.0), "b": (6, None)}


@pytest.mark.parametrize("kind", STORY)
def test_every_caption_is_a_sentence(kind):
    said = caption({"type": kind, "agent": "\x1b[1m[x]", "reason": "because {agent}.", "facts": {}})
    assert said.isprintable()
    assert said[0].isupper() or said.startswith("[x]")


def test_what_only_matters_to_the_record_has_no_caption():
    assert caption({"type": "effect.begun", "agent": "a", "reason": "x", "facts": {}}) == ""
    assert (
        caption({"type": "agent.state_changed", "agent": "a", "reason": "x", "facts": {"now": "WORKING"}})
        == "a works."
    )
