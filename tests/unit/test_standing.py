"""Which declaration is in force, and who may be asked for what: tables."""

from __future__ import annotations

import pytest

from fleet.core.outline import KEYS, Cause, Ground, cause, changed
from fleet.host.processes import is_control_client

HERE = Ground("/p/agents.toml", "p-", "/p/.ao", "ao-p", "1")
ELSEWHERE = HERE._replace(log_dir="/p/.other")
MOVED = HERE._replace(config_path="/old/agents.toml", project_id="2")


@pytest.mark.parametrize(
    ("fault", "here", "recorded", "alive", "expected"),
    [
        (Cause.NONE, HERE, None, False, Cause.NONE),
        (Cause.NONE, HERE, HERE, True, Cause.NONE),
        (Cause.NONE, HERE, ELSEWHERE, True, Cause.CHANGED),
        (Cause.NONE, HERE, ELSEWHERE, False, Cause.NONE),
        (Cause.NONE, HERE, MOVED, True, Cause.MOVED),
        (Cause.NONE, HERE, MOVED, False, Cause.NONE),
        (Cause.BROKEN, None, None, True, None),
        (Cause.BROKEN, None, HERE, False, Cause.BROKEN),
        (Cause.MISSING, None, HERE, True, Cause.MISSING),
        (Cause.UNREADABLE, None, HERE, True, Cause.UNREADABLE),
    ],
)
def test_what_is_in_force(fault, here, recorded, alive, expected):
    assert cause(fault, here, recorded, lambda _ground: alive) is expected


def test_a_file_that_is_as_recorded_costs_no_look_at_tmux():
    def ask(_ground: Ground) -> bool:
        raise AssertionError("tmux was asked")

    assert cause(Cause.NONE, HERE, HERE, ask) is Cause.NONE
    assert cause(Cause.BROKEN, None, HERE, ask) is Cause.BROKEN


@pytest.mark.parametrize("key", KEYS)
def test_what_says_where_a_fleet_lives_is_compared(key):
    assert changed(HERE, HERE._replace(**{key: "other"})) == (key,)
    assert changed(HERE, MOVED) == ()


OURS = "tmux -L ao-p -u -N -C new-session -A -f no-output,ignore-size -s ao-anchor-1 cat"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (OURS, True),
        (OURS.replace("-L ao-p", "-S /tmp/x"), True),
        (OURS.replace("ao-anchor-1", "ao-anchor-12"), False),
        (OURS.replace("-s ao-anchor-1", "-s mine"), False),
        (OURS.replace(" -C ", " "), False),
        ("tmux -C attach -t ao-anchor-1", False),
        ("tmux -L ao-p start-server ; source-file -", False),
        ("", False),
    ],
)
def test_only_our_own_control_clients_are_taken_for_ours(line, expected):
    assert is_control_client(line.split(" "), "1") is expected
