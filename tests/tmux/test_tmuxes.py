"""A whole life of a fleet under every tmux there is: the one on PATH, and those that AO_TMUX lists."""

from __future__ import annotations

import pytest

from tests.contract.stage import on_path, tmuxes
from tests.tmux.project import scripted, until

pytestmark = pytest.mark.tmux
TMUXES = tmuxes()

QUITTER = """
[backend.quitter]
prompt_delivery = "exec"
bin = "exit 3"
[[agent]]
name = "q"
kind = "persistent"
backend = "quitter"
prompt = "x"
"""


@pytest.mark.parametrize("version", TMUXES)
def test_a_fleet_with_a_dead_pane_is_seen_spoken_to_and_taken_down(make, tmp_path, monkeypatch, version):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", on_path(TMUXES[version], str(folder)))
    p = make()
    p.write(QUITTER + scripted(p, "a"))
    p.agents("up", code=None)
    until(lambda: p.row("q")["detail"] == "BACKOFF")  # its pane stays, dead, until the next try
    facts = p.json("status")
    assert not [problem for problem in facts["problems"] if "tmux" in str(problem)], facts["problems"]
    assert {row["state"] for row in facts["agents"]}.isdisjoint({"UNSEEN", "UNKNOWN"})
    p.agents("send", "a", "hello")
    assert "hello" in [row["text"] for row in p.received("a")]
    first = p.pid("a")
    p.agents("restart", "a")
    assert until(lambda: p.pid("a") not in {0, first} and p.pid("a"))
    p.agents("down")
    assert p.tmux("list-sessions") == ""
