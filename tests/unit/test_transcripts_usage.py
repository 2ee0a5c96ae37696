"""Every message once: the rule of I38 and T81 as tables."""

from __future__ import annotations

import itertools

import pytest

from fleet.backends.ledger import Counts, Ledger, Transcript, cells_beyond, number

MAIN, SIDE = False, True


def total(lines, paths=("a", "b")):
    """Output tokens counted; a line is (file, message, request, output, side)."""
    ledger = Ledger()
    numbers = {path: ledger.source(Transcript(path, "claude")) for path in paths}
    for path, message, request, output, side in lines:
        ledger.add(numbers[path], message, request, (1, output, 0, 0), "m", "2026-11-16", side)
    return ledger.total().output


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([("a", "m", "r", 9, MAIN)] * 3, 9, id="repeated-lines-count-once"),
        pytest.param([("a", "m", "r", 1, MAIN), ("a", "m", "r", 9, MAIN)], 9, id="most-tokens-count"),
        pytest.param(
            [("a", "m", "r", 9, MAIN), ("b", "m", "r", 9, MAIN)], 9, id="a-resumed-copy-counts-once"
        ),
        pytest.param(
            [("a", "m", "r", 9, MAIN), ("a", "m", "q", 5, MAIN)], 14, id="another-request-is-another"
        ),
        pytest.param([("a", "m", "r", 5, MAIN), ("b", "m", "r", 90, SIDE)], 5, id="a-side-chain-copy-loses"),
        pytest.param([("a", "m", "q", 90, SIDE), ("b", "m", "r", 5, MAIN)], 5, id="whatever-its-request"),
        pytest.param(
            [("a", "m", "r", 3, SIDE), ("a", "m", "q", 7, SIDE)], 7, id="side-chains-count-by-message"
        ),
        pytest.param(
            [("a", "m", "q", 9, SIDE), ("a", "m", "r", 3, MAIN), ("a", "m", "p", 5, MAIN)],
            8,
            id="two-requests-beat-one-side-chain",
        ),
        pytest.param([("a", "m", "", 9, MAIN), ("a", "m", "", 9, MAIN)], 9, id="no-request-id-is-one-too"),
    ],
)
def test_what_counts_does_not_depend_on_the_order_of_reading(lines, expected):
    for order in itertools.permutations(lines):
        assert total(order) == expected, order


def test_between_equals_the_dearer_counts_whichever_came_first():
    cheap, dear = (5, 1, 0, 0), (1, 5, 0, 0)
    for order in ((cheap, dear), (dear, cheap)):
        ledger = Ledger()
        source = ledger.source(Transcript("a", "claude"))
        for counts in order:
            ledger.add(source, "m", "r", counts, "x", "d")
        assert ledger.total() == Counts(*dear)


def test_between_equals_in_two_files_the_owner_does_not_depend_on_the_order():
    winners = set()
    for order in (("a", "b"), ("b", "a")):
        ledger = Ledger()
        numbers = {path: ledger.source(Transcript(path, "claude")) for path in order}
        for path in order:
            ledger.add(numbers[path], "m", "r", (1, 2, 3, 4), "x", "d")
        winners.add(next(s.path for s, c in zip(ledger.sources, ledger.by_source(), strict=True) if c))
    assert winners == {"a"}


def test_a_message_taken_over_by_another_file_leaves_nothing_behind():
    ledger = Ledger()
    a, b = ledger.source(Transcript("a", "claude")), ledger.source(Transcript("b", "claude"))
    ledger.add(a, "m", "r", (1, 1, 0, 0), "x", "day 1")
    ledger.add(b, "m", "r", (1, 9, 0, 0), "y", "day 2")
    assert ledger.by_source() == [{}, {("y", "day 2"): Counts(1, 9)}]


def test_a_dumped_ledger_adds_up_to_the_same_in_another_one():
    ledger, other = Ledger(), Ledger()
    rows = [("m", "r", 9, MAIN), ("m", "q", 4, MAIN), ("n", "", 2, SIDE), ("o", "x", 7, SIDE)]
    source = ledger.source(Transcript("a", "claude"))
    for message, request, output, side in rows:
        ledger.add(source, message, request, (0, output, 0, 0), "x", "d", side)
    other.source(Transcript("a", "claude"))
    for _ in range(2):
        for row in ledger.dump():
            other.add(*row)
    assert other.total() == ledger.total() == Counts(output=22)
    other.add(0, "o", "y", (0, 1, 0, 0), "x", "d")  # a main line still beats the side-chain copy
    assert other.total() == Counts(output=16)


@pytest.mark.parametrize("value", [None, True, "7", -3, float("nan"), float("inf"), 1 << 70, [], {}])
def test_what_is_no_count_counts_as_nothing(value):
    assert number(value) == 0


def test_a_count_that_shrank_takes_nothing_from_what_was_used_since():
    base = {("m", "old"): Counts(input=100), ("m", "new"): Counts(input=5)}
    now = {("m", "new"): Counts(input=9, output=1)}
    assert cells_beyond(now, base) == {("m", "new"): Counts(input=4, output=1)}
