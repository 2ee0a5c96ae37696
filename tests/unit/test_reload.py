"""agents.toml is believed when it is whole: half-written, garbled or shrunken, the last good one rules."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fleet import config
from fleet.host.disk import RealDisk
from fleet.ports import FileStat
from fleet.supervisor.reload import CAP, SETTLE_S, SHRUNK_S, Reloader

PATH = "/project/agents.toml"
HEAD = '[defaults]\nsession_prefix = "p-"\nlog_dir = ".ao"\nbackend = "demo"\n'


def agents(*names: str) -> str:
    return "".join(f'\n[[agent]]\nname = "{n}"\nkind = "persistent"\nmodel = "m-{n}"\n' for n in names)


GOOD = HEAD + agents("a", "b", "c", "d")


class Editor:
    """A file somebody edits, and the clock beside it."""

    def __init__(self, text: str = GOOD) -> None:
        self.now, self.saved, self.fault = 1000.0, 0, ""
        self.raw: bytes | OSError = b""
        self.save(text)
        world = SimpleNamespace(disk=self, clock=self)
        self.reloader = Reloader(world, PATH, config.parse)
        self.reloader.refresh(force=True)

    def save(self, text: str | bytes) -> None:
        self.raw, self.saved = text.encode() if isinstance(text, str) else text, self.saved + 1

    def lose(self, error: OSError) -> None:
        self.raw, self.saved = error, self.saved + 1

    def stat(self, _path):
        if isinstance(self.raw, OSError):
            return None
        return FileStat(len(self.raw), self.saved, self.saved, 0o100644)

    def read(self, _path, cap=CAP):
        if isinstance(self.raw, OSError):
            raise self.raw
        return self.raw

    def untrusted(self, _path):
        return self.fault

    def mono(self) -> float:
        return self.now

    def look(self, after: float = 0.0):
        self.now += after
        return self.reloader.refresh()

    @property
    def names(self) -> list[str]:
        return [a.name for a in self.reloader.fleet.agents]


def test_an_unchanged_file_is_not_even_read(monkeypatch):
    e = Editor()
    monkeypatch.setattr(e, "read", lambda *_: pytest.fail("it was read"))
    assert not e.look().event


def test_a_file_that_is_kept_elsewhere_is_followed_there(tmp_path):
    real, link = tmp_path / "kept.toml", tmp_path / "agents.toml"
    real.write_text(GOOD)
    link.symlink_to(real)
    world = SimpleNamespace(disk=RealDisk(), clock=SimpleNamespace(mono=lambda: 0.0))
    reloader = Reloader(world, str(link), config.parse)
    assert reloader.refresh(force=True).event == "config.loaded"
    assert not reloader.refresh().event
    real.write_text(GOOD + agents("e"))
    assert reloader.refresh().event == "config.loaded"


def test_an_edit_is_in_force_at_the_next_look():
    """R148, T46."""
    e = Editor()
    e.save(GOOD.replace("m-a", "another"))
    assert e.look().event == "config.loaded"
    assert e.reloader.fleet.agents[0].model == "another"


def test_a_file_in_the_middle_of_being_written_is_looked_at_again_before_it_is_called_bad():
    """T44: editors truncate first."""
    e = Editor()
    e.save(GOOD[:-20])
    assert e.look().event is None
    assert 0 < e.reloader.again_in <= SETTLE_S
    e.save(GOOD + agents("e"))
    assert e.look(0.3).event == "config.loaded"
    assert e.names == ["a", "b", "c", "d", "e"]


def test_a_bad_file_is_reported_once_and_the_last_good_one_stays_in_force():
    """T44, I36."""
    e = Editor()
    e.save(GOOD + "\n[[[")
    e.look()
    bad = e.look(SETTLE_S + 0.1)
    assert bad.event == "config.rejected"
    assert "agents.toml:" in bad.reason
    assert e.reloader.problem
    for _ in range(3):
        assert not e.look(5.0).event
    assert e.names == ["a", "b", "c", "d"]
    e.save(GOOD)
    assert e.look().event == "config.recovered"
    assert not e.reloader.problem


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file"), PermissionError(13, "not allowed")])
def test_a_file_that_is_gone_or_shut_changes_nothing(error):
    """Also the gap of an editor that moves the old file away first."""
    e = Editor()
    e.lose(error)
    assert not e.look().event
    assert e.look(SETTLE_S + 0.1).event == "config.rejected"
    assert e.names == ["a", "b", "c", "d"]
    e.save(GOOD)
    assert e.look().event == "config.recovered"


def test_every_prefix_and_every_garbled_byte_leaves_the_fleet_as_it_was_within_the_settling_time():
    """I36: whatever parses by accident, more than half of the agents never go at once."""
    for cut in range(len(GOOD)):
        e = Editor()
        e.save(GOOD[:cut])
        e.look()
        left = set(e.names)
        assert len({"a", "b", "c", "d"} - left) <= 2, cut
        e.save(GOOD)
        e.look()
        assert e.names == ["a", "b", "c", "d"], cut
    raw = GOOD.encode()
    for place in range(0, len(raw), 3):
        for byte in (b"\0", b"\xff", b'"'):
            e = Editor()
            e.save(raw[:place] + byte + raw[place + 1 :])
            e.look()
            e.save(GOOD)
            e.look()
            assert e.names == ["a", "b", "c", "d"], (place, byte)


def test_a_file_that_lost_more_than_half_of_its_agents_is_believed_after_a_minute():
    """SEC-18: on the steady clock, and only if it stays that way."""
    e = Editor()
    e.save(HEAD + agents("a"))
    said = e.look()
    assert said.event == "config.shrunk"
    assert "3 of 4" in said.reason
    assert not e.look(SHRUNK_S - 1).event
    assert e.names == ["a", "b", "c", "d"]
    assert e.look(2).event == "config.recovered"
    assert e.names == ["a"]


def test_the_minute_begins_anew_with_every_other_content():
    e = Editor()
    e.save(HEAD + agents("a"))
    e.look()
    e.save(HEAD + agents("b"))
    assert e.look(SHRUNK_S - 1).event == "config.shrunk"
    assert not e.look(SHRUNK_S - 1).event
    assert e.names == ["a", "b", "c", "d"]
    e.save(GOOD)
    assert e.look().event == "config.recovered"
    assert e.names == ["a", "b", "c", "d"]


def test_half_of_the_agents_may_go_at_once():
    e = Editor()
    e.save(HEAD + agents("b", "d"))
    assert e.look().event == "config.loaded"
    assert e.names == ["b", "d"]


def test_the_beginning_of_the_file_that_was_may_be_a_write_that_is_not_done():
    """I36: a last key lost on the way would otherwise start its agent with another life."""
    e = Editor()
    text = GOOD + "resume = true\n"
    e.save(text)
    assert e.look().event == "config.loaded"
    e.save(GOOD)
    said = e.look()
    assert said.event == "config.shrunk"
    assert "ends 14 bytes before" in said.reason
    assert e.reloader.fleet.agents[-1].resume
    assert e.look(SHRUNK_S).event == "config.recovered"
    assert not e.reloader.fleet.agents[-1].resume
    e.save(text)
    assert e.look().event == "config.loaded"


def test_an_edit_further_up_does_not_hide_that_the_end_is_not_written_yet():
    """I36: the same loss while another version is being written."""
    e = Editor(GOOD + "resume = true\n" + agents("e"))
    e.save("# edited\n" + GOOD)
    said = e.look()
    assert said.event == "config.shrunk"
    assert "middle of a table" in said.reason
    assert e.reloader.fleet.agents[3].resume
    e.save("# edited\n" + GOOD + "resume = true\n")
    assert e.look().event == "config.recovered"
    assert e.names == ["a", "b", "c", "d"]


REMOVED = ('[[agent]]\nname = "e"\nkind = "persistent"\nprompt = "x"\n', "# the end\n", "\n\n")


@pytest.mark.parametrize("tail", REMOVED)
def test_a_table_or_a_remark_at_the_end_may_go_at_once(tail):
    """T24: that is how people take an agent out."""
    e = Editor(GOOD + "\n" + tail)
    e.save(GOOD + "\n")
    assert e.look().event in {"config.loaded", ""}
    assert not e.reloader.problem


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"p-"', '"q-"', "session_prefix"),
        ('".ao"', '".other"', "log_dir"),
        ('backend = "demo"', 'backend = "demo"\ntmux_socket = "elsewhere"', "tmux_socket"),
    ],
)
def test_what_a_running_fleet_cannot_follow_is_refused_with_what_to_do(old, new, key):
    """T45."""
    e = Editor()
    e.save(GOOD.replace(old, new, 1))
    said = e.look()
    assert said.event == "config.rejected"
    assert key in said.reason
    assert "down" in said.reason
    assert e.names == ["a", "b", "c", "d"]


def test_a_file_that_became_another_users_is_not_read():
    """I36."""
    e = Editor()
    e.fault = "agents.toml belongs to another user (uid 1234, mode 0644)"
    e.save(GOOD.replace("m-a", "theirs"))
    assert "another user" in e.look().reason
    assert e.reloader.fleet.agents[0].model == "m-a"
