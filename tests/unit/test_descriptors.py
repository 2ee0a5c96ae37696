"""How many open files a fleet needs, and who holds a socket."""

from __future__ import annotations

import pytest

from fleet.host.descriptors import AMPLE, UNLIMITED, needed, parse, widened
from fleet.host.processes import listening
from fleet.ports import Allowance


@pytest.mark.parametrize(
    ("sessions", "need"), [(0, 64), (3, 70), (96, 256), (97, 258), (152, 368), (480, 1024)]
)
def test_each_session_needs_a_terminal_and_a_log(sessions, need):
    assert needed(sessions) == need


@pytest.mark.parametrize(
    ("soft", "hard", "need", "after"),
    [
        (256, 256, 368, 256),  # it may not have more
        (256, 300, 368, 300),
        (256, 4096, 368, 4096),
        (1024, 1 << 20, 368, AMPLE),  # no further than ample
        (1024, 1 << 20, 2 * AMPLE, 2 * AMPLE),  # unless it is needed
        (1 << 20, 1 << 20, 368, 1 << 20),  # never less than it has
        (1024, UNLIMITED, 368, AMPLE),
        (UNLIMITED, UNLIMITED, 368, UNLIMITED),
    ],
)
def test_a_limit_is_raised_as_far_as_it_may_and_never_lowered(soft, hard, need, after):
    assert widened(soft, hard, need) == after


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (
            "Max processes 5 6 processes\nMax open files      1024   524288    files\n",
            Allowance(1024, 524288),
        ),
        ("Max open files            256   unlimited    files\n", Allowance(256, UNLIMITED)),
        ("", None),
    ],
)
def test_the_limit_of_another_process_is_read(text, limit):
    assert parse(text) == limit


SOCKETS = """\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000001: 00000002 00000000 00010000 0001 01 11 /tmp/tmux-0/ours
0000000000000002: 00000003 00000000 00000000 0001 03 12 /tmp/tmux-0/ours
0000000000000003: 00000002 00000000 00010000 0001 01 13 /tmp/tmux-0/ours-2
0000000000000004: 00000003 00000000 00000000 0001 03 14
0000000000000005: 00000002 00000000 00010000 0001 01 15 /tmp/with two words
"""


@pytest.mark.parametrize(
    ("path", "inodes"),
    [
        ("/tmp/tmux-0/ours", {11}),  # its connections have the same path
        ("/tmp/tmux-0/our", set()),
        ("/tmp/with two words", {15}),
        ("", set()),
    ],
)
def test_a_socket_is_found_by_its_exact_path_and_only_where_it_listens(path, inodes):
    assert listening(SOCKETS, path) == inodes
