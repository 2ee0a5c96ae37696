"""`agents.py screen`, `backend` and `selftest`, as a person or a program calls them."""

from __future__ import annotations

import argparse
import dataclasses
import io as streams
import json
import tomllib
from pathlib import Path

import pytest

from fleet.backends import corpus, profiles
from fleet.backends.screen_reader import read
from fleet.core.seen import Reading, ScreenState
from fleet.verbs import backend as backend_verb
from fleet.verbs import screen as screen_verb
from fleet.verbs.io import Fail, Io
from fleet.verbs.main import main

SCREENS = Path(corpus.CORPUS)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_screen_is_told_with_its_state_its_instant_and_its_evidence(capsys):
    file = str(SCREENS / "claude" / "32-limit-weekly.txt")
    code, out, _ = call(capsys, "screen", "--backend", "claude", "--at", "2026-11-16T01:00:00Z", file)
    assert code == 0
    assert "limited until 2026-11-19T12:15:00+00:00 (pattern usage-limit)" in out
    assert "You've hit your weekly limit" in out


def test_for_programs_there_is_one_document_with_a_row_for_each_file(capsys):
    files = [str(SCREENS / "codex" / f"{name}.txt") for name in ("08-usage-limit", "03-working")]
    code, out, _ = call(
        capsys,
        "screen",
        "--json",
        "--backend",
        "codex",
        "--zone",
        "UTC",
        "--at",
        "2026-11-16T01:00:00Z",
        *files,
    )
    first, second = json.loads(out)
    assert code == 0
    assert (first["file"], first["state"], first["until"]) == (files[0], "limited", 1794803400.0)
    assert (first["dialog"], first["key"]) == ("rate-limit-switch", "Escape")
    assert (second["state"], second["until"], second["pattern"]) == ("unknown", None, "")


def test_a_screen_may_come_from_standard_input(capsys, monkeypatch):
    data = (SCREENS / "opencode" / "02-working-streaming.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(data)))
    code, out, _ = call(capsys, "screen", "--backend", "opencode", "-")
    assert (code, out.splitlines()[0]) == (0, "-: working (pattern interruptible)")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("screen",), "screen needs FILE and --backend"),
        (("screen", "--backend", "nosuch", "x"), "there is no backend 'nosuch'"),
        (("screen", "--backend", "claude", "nosuch.txt"), "nosuch.txt cannot be read: No such file"),
        (("screen", "--backend", "claude", "--at", "soon", "x"), "--at soon is not a time"),
        (("backend", "show"), "backend show needs a name"),
        (("backend", "show", "../x"), "there is no backend '../x'"),
        (("selftest", "--live", "nosuch"), "there is no live drill for 'nosuch'"),
        (["screen", "--backend", "claude", "--zone", "Nowhere/Land", "/dev/null"], "no zone 'Nowhere/Land'"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_ends_with_2(capsys, words, said):
    code, _, err = call(capsys, *words)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_bytes_that_are_no_text_are_read_all_the_same(capsys, tmp_path):
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 20)
    code, out, _ = call(capsys, "screen", "--backend", "claude", "noise.bin")
    assert code == 0
    assert "\x1b" not in out


@pytest.mark.parametrize("name", profiles.names())
def test_a_shown_backend_is_toml_that_means_the_same_backend(capsys, name):
    _, out, _ = call(capsys, "backend", "show", name)
    table = tomllib.loads(out)["backend"][name]
    assert table == json.loads(json.dumps(backend_verb.document(profiles.load(name))))


def test_what_a_shown_backend_holds_of_odd_characters_is_still_toml(capsys, tmp_path):
    odd = "a\x7f\x85\u2028'b\"\\("
    (tmp_path / "agents.toml").write_text(
        "[defaults]\nsession_prefix='p-'\nlog_dir='log'\n[backend.odd]\nbin='true'\n"
         r"""limit_re = "a\u007f\u0085\u2028'b\"\\("
"""
        "[[agent]]\nname='a'\nkind='persistent'\nbackend='odd'\nprompt='x'\n"
    )
    code, out, _ = call(capsys, "backend", "show", "odd")
    assert code == 0
    assert tomllib.loads(out)["backend"]["odd"]["limit_re"] == odd


def test_a_project_sees_its_own_keys_merged_over_the_shipped_profile(capsys, tmp_path):
    (tmp_path / "agents.toml").write_text(
        "[defaults]\nsession_prefix='p-'\nlog_dir='log'\n"
        "[backend.claude]\nlimit_re='quota is used up'\nstall_idle=77\n"
        "[[backend.claude.patterns]]\nname='night'\nstate='error'\nre='^. Good night'\n"
        "[[agent]]\nname='a'\nkind='persistent'\nbackend='claude'\nprompt='x'\n"
    )
    _, out, _ = call(capsys, "backend", "show", "claude", "--json")
    shown = json.loads(out)
    assert (shown["limit_re"], shown["stall_idle"]) == ("quota is used up", 77.0)
    assert {"night", "usage-limit"} <= {p["name"] for p in shown["patterns"]}


def test_backend_list_names_every_profile_and_the_release_it_was_proved_against(capsys):
    _, out, _ = call(capsys, "backend", "list", "--json")
    rows = {row["name"]: row["proved_against"] for row in json.loads(out)}
    assert set(rows) == set(profiles.names())
    assert rows["codex"] == "0.166.0"


def test_a_kept_screen_is_a_capture_with_its_label_and_proves_itself(tmp_path):
    claude = dataclasses.replace(profiles.load("claude"), bin="/nowhere/claude")
    text = (SCREENS / "claude" / "c325-draft.txt").read_text()
    now = 1794799000.7
    reading = read(claude, text, now=now, zone="Europe/Berlin")
    path = Path(screen_verb.keep(str(tmp_path), claude, text, reading, now, "Europe/Berlin"))
    assert path.stat().st_mode & 0o777 == 0o600
    (capture,) = corpus.captures("claude", str(tmp_path))
    assert corpus.check(claude, capture).ok
    assert (capture.state, capture.draft, capture.taken) == ("idle", "a human draft here", 1794799000.0)
    other = reading._replace(state=ScreenState.UNKNOWN)
    screen_verb.keep(str(tmp_path), claude, text, other, now + 5, "UTC")
    assert [c.state for c in corpus.captures("claude", str(tmp_path))] == ["idle", "unknown"]


def test_only_an_agent_of_this_project_can_be_kept(tmp_path):
    (tmp_path / "agents.toml").write_text("[defaults]\nsession_prefix='p-'\nlog_dir='log'\n")
    args = argparse.Namespace(save="ghost", config=None, json=False, zone=None, into=None)
    with pytest.raises(Fail, match="no agent is called 'ghost'"):
        screen_verb.save(args, Io())


def test_a_marker_and_a_dialog_are_shown_to_people(capsys):
    screen_verb.show(
        Io(), "x", Reading(ScreenState.ASKING, "trust", "Trust?", dialog="trust", fix="Trust it once.")
    )
    out = capsys.readouterr().out
    assert "no key is allowed" in out
    assert "Trust it once." in out


def test_selftest_passes_on_the_shipped_corpus(capsys):
    """R146: no config, no network."""
    code, out, _ = call(capsys, "selftest", "--json")
    document = json.loads(out)
    assert (code, document["failed"]) == (0, 0)
    assert document["passed"] > 150


def test_selftest_says_which_screen_is_read_wrong(monkeypatch, capsys):
    """A profile line that no longer holds is named."""
    broken = {name: profiles.load(name) for name in corpus.recorded()}
    patterns = tuple(p for p in broken["claude"].patterns if p.name != "usage-limit")
    broken["claude"] = dataclasses.replace(broken["claude"], patterns=patterns)
    monkeypatch.setattr(corpus.profiles, "load", broken.__getitem__)
    code, out, _ = call(capsys, "selftest")
    assert code == 1
    assert "FAIL claude/32-limit-weekly: expected limited, until" in out
