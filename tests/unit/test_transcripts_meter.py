"""Whose transcripts they are, and what it costs to keep an eye on them."""

from __future__ import annotations

import os
import shutil

import pytest

from fleet.backends.claude import usage as claude
from fleet.backends.ledger import sum_counts
from fleet.backends.readers import Wanted
from fleet.reading import Tail
from fleet.tokens.files import sharing
from fleet.tokens.meter import Meter
from fleet.tokens.totals import read_all
from tests.unit.transcript_samples import FIXTURES, claude_line, codex_lines


class Home:
    """A home directory with transcripts in it."""

    def __init__(self, root):
        self.root = root
        self.env = {"HOME": str(root)}

    def claude(self, folder, session, *lines, below="projects", base=".claude"):
        path = self.root / base / below / folder / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as handle:
            handle.writelines(lines)
        return path

    def codex(self, session, *lines):
        path = self.root / ".codex" / "sessions" / "2026" / "11" / "16" / f"rollout-{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as handle:
            handle.writelines(lines)
        return path

    def wanted(self, name, directory="/proj/a", kind="claude", *, sessions=(), signature="", **env):
        return Wanted(name, kind, directory, signature, frozenset(sessions), {**self.env, **env})


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def outputs(meter, *wanted):
    """Output tokens per agent; what is shared under its own name."""
    meter.sweep(wanted)
    tally = meter.tally(wanted)
    found = {n: None if c is None else sum_counts(c.values()).output for n, c in tally.agents.items()}
    return found | ({"(shared)": sum_counts(tally.shared.values()).output} if tally.shared else {})


def test_a_directory_is_enough_to_know_whose_it_is(home):
    home.claude("-proj-a", "s1", claude_line("m", output=5))
    home.claude("-proj-b", "s2", claude_line("n", output=7, cwd="/proj/b"))
    assert outputs(Meter(), home.wanted("a"), home.wanted("b", "/proj/b")) == {"a": 5, "b": 7}


def test_no_transcript_is_not_nought(home):
    home.claude("-proj-a", "s1", b'{"type":"user","cwd":"/proj/a"}\n')
    agents = (home.wanted("quiet"), home.wanted("none", "/proj/none"), home.wanted("demo", kind=""))
    assert outputs(Meter(), *agents) == {"quiet": 0, "none": None, "demo": None}


def test_directories_whose_slugs_collide_are_told_apart_by_the_lines(home):
    home.claude("-proj-a-b", "s1", claude_line("m", output=5, cwd="/proj/a.b"))
    home.claude("-proj-a-b", "s2", claude_line("n", output=7, cwd="/proj/a_b"))
    assert outputs(Meter(), home.wanted("dot", "/proj/a.b"), home.wanted("bar", "/proj/a_b")) == {
        "dot": 5,
        "bar": 7,
    }


def test_sub_agents_belong_to_their_parent_and_are_counted_once(home):
    home.claude("-proj-a", "s1", claude_line("m", output=5))
    side = claude_line("side", output=9, isSidechain=True)
    home.claude("-proj-a/s1/subagents", "agent-1", side)
    home.claude(
        "-proj-a", "s1", b'{"type":"user","toolUseResult":{"usage":{"output_tokens":9}},"cwd":"/proj/a"}\n'
    )
    shared_dir = home.wanted("b")
    assert outputs(Meter(), home.wanted("a", sessions=["s1"]), shared_dir) == {"a": 14, "b": None}


def test_a_shared_directory_is_split_by_session_then_by_signature_and_else_counted_once(home):
    home.claude("-proj-a", "s1", claude_line("m1", output=1))
    home.claude(
        "-proj-a",
        "s2",
        b'{"type":"user","message":{"content":"You are \\"B\\""}}\n',
        claude_line("m2", output=2),
    )
    home.claude("-proj-a", "s3", claude_line("m3", output=4))
    agents = (home.wanted("a", sessions=["s1"]), home.wanted("b", signature='You are "B"'))
    assert outputs(Meter(), *agents) == {"a": 1, "b": 2, "(shared)": 4}
    assert sharing(agents) == (("a", "b"),)


def test_a_signature_may_come_after_the_first_look(home):
    path = home.claude("-proj-a", "s1", b'{"type":"mode"}\n')
    agents, meter = (home.wanted("a", signature="ALPHA"), home.wanted("b", signature="BETA")), Meter()
    outputs(meter, *agents)
    with open(path, "ab") as handle:
        handle.write(b'{"type":"user","message":{"content":"BETA"}}\n' + claude_line("m", output=3))
    assert outputs(meter, *agents) == {"a": None, "b": 3}


def test_a_session_is_found_wherever_it_lies(home):
    home.claude("-elsewhere", "s1", claude_line("m", output=5, cwd="/elsewhere"))
    home.claude("-elsewhere/s1/subagents", "agent-1", claude_line("n", output=2, isSidechain=True))
    assert outputs(Meter(), home.wanted("a", sessions=["s1"])) == {"a": 7}


def test_a_symlinked_directory_is_the_same_directory(home, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    slug = str(real).replace("/", "-").replace("_", "-").replace(".", "-")
    home.claude(slug, "s1", claude_line("m", output=5, cwd=str(real)))
    assert outputs(Meter(), home.wanted("a", str(link))) == {"a": 5}


def test_each_cli_is_looked_for_where_its_environment_says(home, tmp_path):
    other = Home(tmp_path / "other")
    other.claude("-proj-a", "s1", claude_line("m", output=5), base="config")
    other.codex("t", *codex_lines(8))
    store = tmp_path / "data" / "opencode"
    store.mkdir(parents=True)
    shutil.copy(_database(tmp_path), store / "opencode.db")
    agents = (
        home.wanted("claude", CLAUDE_CONFIG_DIR=str(tmp_path / "other" / "config")),
        home.wanted("codex", kind="codex", CODEX_HOME=str(tmp_path / "other" / ".codex")),
        home.wanted("opencode", "/home/user/proj/oc", "opencode", XDG_DATA_HOME=str(tmp_path / "data")),
        home.wanted("lost", "/proj/a", "codex"),
    )
    assert outputs(Meter(), *agents) == {"claude": 5, "codex": 8, "opencode": 110, "lost": None}


def _database(folder):
    import sqlite3

    path = folder / "made.db"
    connection = sqlite3.connect(path)
    connection.executescript((FIXTURES / "opencode.sql").read_text(encoding="utf-8"))
    connection.close()
    return path


def test_codex_threads_of_other_projects_are_nobodys(home):
    home.codex("t1", *codex_lines(5))
    home.codex("t2", *codex_lines(50, cwd="/elsewhere", session="t2"))
    assert outputs(Meter(), home.wanted("a", kind="codex")) == {"a": 5}


def test_new_lines_files_and_sessions_are_found_by_the_next_sweep(home):
    path = home.claude("-proj-a", "s1", claude_line("m", output=5))
    agent, meter = home.wanted("a"), Meter()
    assert outputs(meter, agent) == {"a": 5}
    with open(path, "ab") as handle:
        handle.write(claude_line("n", output=7))
    home.claude("-proj-a", "s2", claude_line("o", output=11))
    home.claude("-proj-a/s2/subagents", "agent-9", claude_line("p", output=13, isSidechain=True))
    assert outputs(meter, agent) == {"a": 36}


def test_lines_written_just_before_a_rotation_are_not_lost(home):
    path = home.claude("-proj-a", "s1", claude_line("m", output=5))
    agent, meter = home.wanted("a"), Meter()
    outputs(meter, agent)
    with open(path, "ab") as handle:
        handle.write(claude_line("n", output=7))
    path.rename(path.with_suffix(".jsonl.1"))
    home.claude("-proj-a", "s1", claude_line("o", output=11))
    assert outputs(meter, agent) == {"a": 23}


def test_a_file_that_vanished_stays_counted(home):
    path = home.claude("-proj-a", "s1", claude_line("m", output=5))
    agent, meter = home.wanted("a"), Meter()
    outputs(meter, agent)
    path.unlink()
    assert outputs(meter, agent) == {"a": 5}


def test_nothing_new_opens_no_file_and_lists_no_settled_directory(home, monkeypatch):
    for number in range(5):
        path = home.claude("-proj-a", f"s{number}", claude_line(f"m{number}"))
    old = 1_700_000_000_000_000_000
    os.utime(path.parent, ns=(old, old))
    os.utime(path.parent.parent, ns=(old, old))
    agent, meter = home.wanted("a"), Meter()
    outputs(meter, agent)
    monkeypatch.setattr(os, "open", _forbidden)
    monkeypatch.setattr(os, "scandir", _forbidden)
    monkeypatch.setattr(Tail, "read", _forbidden)
    assert meter.sweep([agent])


def _forbidden(*args, **kwargs):
    raise AssertionError(f"must not be touched: {args}")


def test_a_budget_spreads_the_reading_over_several_sweeps_and_loses_nothing(home):
    for number in range(6):
        home.claude("-proj-a", f"s{number}", claude_line(f"m{number}", output=1))
    agent, meter = home.wanted("a"), Meter()
    sweeps = 1
    while not meter.sweep([agent], budget=1):
        sweeps += 1
        assert sweeps < 20
    assert sweeps > 1
    assert outputs(meter, agent) == {"a": 6}


def test_without_msgspec_the_figures_are_the_same(home, monkeypatch):
    home.claude("-proj-a", "s1", claude_line("m", output=5), claude_line("m", output=9))

    def missing():
        raise ImportError

    claude._decoder.cache_clear()
    monkeypatch.setattr(claude, "quick", missing)
    assert outputs(Meter(), home.wanted("a")) == {"a": 9}
    claude._decoder.cache_clear()


def test_several_processes_count_what_one_does_also_across_their_files(tmp_path):
    jobs = []
    for number in range(5):
        path = tmp_path / f"{number}.jsonl"
        lines = [
            claude_line("everywhere", "r", 10 + number),
            claude_line(f"m{number}"),
            claude_line(None, None),
        ]
        lines += (
            [claude_line("beaten", "q", 90, isSidechain=True)] if number else [claude_line("beaten", "r", 1)]
        )
        path.write_bytes(b"".join(lines))
        jobs.append((str(path), "claude"))
    one, two = read_all(jobs, 1).ledger, read_all(jobs, 3).ledger
    assert one.total() == two.total()
    assert one.messages() == two.messages() == 12


def test_a_reader_process_that_fails_costs_nothing(tmp_path, monkeypatch):
    jobs = []
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_bytes(claude_line(f"m{number}"))
        jobs.append((str(tmp_path / f"{number}.jsonl"), "claude"))
    parent, sweep = os.getpid(), Meter.read_file

    def fail_in_children(self, path, kind):
        if os.getpid() != parent:
            os._exit(9)
        sweep(self, path, kind)

    monkeypatch.setattr(Meter, "read_file", fail_in_children)
    assert read_all(jobs, 3).ledger.total().output == 30
