"""The control protocol, whatever stands in an answer and wherever a read happens to end."""

from __future__ import annotations

import pytest

from fleet.host.tmux.control import _Reader

STREAM = (
    b"%begin 10 1 0\n%end 10 1 0\n"
    b"%session-window-changed $1 @2\n"
    b"%begin 10 2 1\n"
    b"a screen\n\n%end 10 1 1\n%begin 10 3 1\nsaid %end 10 2 1\n%exit\n%sessions-changed\n \xff\xc3\xa9\n"
    b"%end 10 2 1\n"
    b"%sessions-changed\n"
    b"%begin 10 3 1\nno such pane\n%error 10 3 1\n"
    b"%begin 10 4 1\n%error 10 9 1\n%end 10 4 1\n"
)
SCREEN = "a screen\n\n%end 10 1 1\n%begin 10 3 1\nsaid %end 10 2 1\n%exit\n%sessions-changed\n \ufffdé\n"


def fed(*parts):
    reader = _Reader()
    for part in parts:
        reader.feed(part)
    return reader


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, len(STREAM)])
def test_an_answer_is_whole_whatever_it_holds_and_however_it_arrives(step):
    reader = fed(*(STREAM[at : at + step] for at in range(0, len(STREAM), step)))
    assert reader.answered == ["", SCREEN, "%error 10 9 1\n"]
    assert reader.complaints == ["no such pane\n"]
    assert reader.blocks == 4
    assert reader.take_stir()
    assert not reader.take_stir()
    assert not reader.left


def test_a_block_that_has_not_ended_is_no_answer():
    end = STREAM.index(b"%end 10 2 1\n%sessions")
    for cut in range(STREAM.index(b"a screen"), end + len(b"%end 10 2 1")):
        assert fed(STREAM[:cut]).answered == [""]


def test_the_servers_farewell_counts_only_between_answers():
    assert fed(STREAM, b"%exit\n").left
    assert fed(b"%begin 1 1 1\n%exit\n").left is False
