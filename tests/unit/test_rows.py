"""What we say to tmux and how its answers are read, without a tmux."""

from __future__ import annotations

import os
import time

import pytest

from fleet.core.seen import PaneRef, PaneView, Proc, ServerId
from fleet.host import procfs
from fleet.host.pane_logs import SOFT_CAP, LogKeeper, begin, rotate
from fleet.host.tmux import language, pane_rows
from fleet.host.tmux.dialects import PROVED, Complaint, complaint_of, is_taken, parse_version, standing
from fleet.host.tmux.language import Refused
from fleet.host.tmux.speaker import Batch, Said
from fleet.ports import Unavailable
from fleet.supervisor import eye

SERVER = ServerId(100, 1700000000)
REF = PaneRef(SERVER, "a-one", "%3", 42, "r1")
ROW = "cafe|r1|%3|42|42|0|||1700000001|1700000002|7|5|6|0|1|a-one"


def parse(rows, clients="", reader=None):
    return (reader or pane_rows.Rows("cafe")).read(SERVER, "\n".join(rows), clients)


def test_a_row_of_ours_becomes_a_pane_and_every_other_name_is_foreign():
    listing = parse(
        [ROW, "||%4|43||0|||1|2|0|0|0|0|1|the user's | own", "||%5|44||0|||1|2|0|0|0|0|1|ao-anchor-cafe"]
    )
    (view,) = listing.panes
    assert (listing.server, view.ref) == (SERVER, REF)
    assert view.change_key == (1700000002.0, 7, 6, 5)
    assert listing.foreign == ("the user's | own",)


@pytest.mark.parametrize(
    ("dead", "expected"),
    [
        ("0||", (False, None, None)),
        ("1||", (True, None, None)),
        ("1|7|", (True, 7, None)),
        ("1||9", (True, None, 9)),
    ],
)
def test_dead_without_a_status_is_dead_and_not_yet_reaped(dead, expected):
    view = parse([ROW.replace("|0||", f"|{dead}", 1)]).panes[0]
    assert (view.dead, view.exit_code, view.exit_signal) == expected


@pytest.mark.parametrize(
    ("pids", "pid"),
    [
        pytest.param("42|42", 42, id="alive"),
        pytest.param("|42", 42, id="dead-where-tmux-forgets-the-pid"),
        pytest.param("43|42", 43, id="a-person-respawned-it"),
        pytest.param("42|", 42, id="made-before-pids-were-stamped"),
        pytest.param("|", 0, id="neither"),
    ],
)
@pytest.mark.parametrize("dead", ["0||", "1|7|"])
def test_a_pane_is_known_by_its_pid_dead_or_alive(pids, pid, dead):
    row = ROW.replace("|42|42|0||", f"|{pids}|{dead}")
    assert parse([row]).panes[0].ref.pid == pid


@pytest.mark.parametrize("empty", range(5, 16))
def test_what_tmux_leaves_empty_is_either_known_to_be_optional_or_refuses_the_list(empty):
    cells = ROW.split("|")
    cells[empty] = ""
    optional = {6, 7, 8, 13, 14}  # how it ended, a date of ours, no mode, a pipe
    if empty in optional:
        assert parse(["|".join(cells)]).panes[0].ref == REF
    elif empty < 15:
        with pytest.raises(Unavailable):
            parse(["|".join(cells)])


def test_a_row_that_says_what_it_said_is_the_same_pane_until_the_server_is_another():
    reader = pane_rows.Rows("cafe")
    first = parse([ROW], reader=reader).panes[0]
    assert parse([ROW], reader=reader).panes[0] is first
    assert parse([ROW], "0|70|a-one", reader=reader).panes[0].typed_at == 70.0
    assert parse([ROW], reader=reader).panes[0] is first
    changed = parse([ROW.replace("|7|5|6|", "|8|5|6|")], reader=reader).panes[0]
    assert (changed.history, changed.ref) == (8, first.ref)
    other = reader.read(ServerId(101, 1700000000), ROW, "").panes[0]
    assert other.ref.server == ServerId(101, 1700000000)


def test_a_session_made_before_sessions_were_dated_is_an_old_one():
    assert parse([ROW.replace("1700000001", "")]).panes[0].created == 0.0


def test_a_line_break_that_is_none_to_tmux_does_not_break_a_row():
    stranger = "||%4|43||0|||1|2|0|0|0|0|1|two\u2028lines\x85or three"
    assert parse([ROW, stranger]).foreign == ("two\u2028lines\x85or three",)
    assert parse([]).panes == ()


def test_a_session_of_ours_whose_agent_pane_is_gone_is_no_longer_ours():
    assert parse([ROW.replace("|r1|", "||")]).foreign == ("a-one",)


def test_a_second_pane_in_our_session_does_not_make_it_foreign():
    split = ROW.replace("%3", "%9").replace("|r1|", "||")
    for rows in ([ROW, split], [split, ROW]):
        listing = parse(rows)
        assert [p.ref.pane for p in listing.panes] == ["%3"]
        assert listing.foreign == ()


def test_the_newest_key_of_a_person_counts_and_a_control_client_is_nobody():
    view = parse([ROW], "0|50|a-one\n0|70|a-one\n1|99|a-one\n0|80|other\n").panes[0]
    assert view.typed_at == 70.0


@pytest.mark.parametrize(
    "row",
    [
        "",
        "cafe|r1|%3|42|0",
        ROW.replace("|42|", "|4x2|", 1),
        ROW.replace("|0|||", "||||", 1),
        ROW.replace("1700000002", "now"),
    ],
)
def test_a_row_that_does_not_parse_makes_the_whole_answer_unavailable(row):
    """I7: half a list looks like a fleet that died."""
    with pytest.raises(Unavailable):
        parse([ROW, row, ROW]) if row else pane_rows.server_id(row)


@pytest.mark.parametrize(
    "name", ["", "a.b", "a:b", "-a", "=a", "a b", "a;b", "#{pid}", "é", "a\n", "%1", "x" * 97, "$1"]
)
def test_a_name_that_tmux_would_read_otherwise_never_leaves(name):
    """T21, T22, I2."""
    with pytest.raises(Refused):
        language.exact(name)


def test_a_target_is_exact_to_the_colon():
    assert language.exact("a-one") == "=a-one:"


@pytest.mark.parametrize("field", ["session", "pane", "run"])
def test_every_word_of_a_reference_is_checked_before_it_is_said(field):
    bad = PaneRef(
        **{**{f: getattr(REF, f) for f in ("server", "session", "pane", "pid", "run")}, field: "x;y"}
    )
    for say in (language.kill, lambda ref: language.press(ref, ["Enter"])):
        with pytest.raises(Refused):
            say(bad)


def test_an_environment_name_or_a_script_name_that_is_not_one_is_refused():
    good = {"run": "r1", "log": "/l", "project": "cafe", "env": {}}
    with pytest.raises(Refused):
        language.create("a-one", "/s/launch-a.sh", **{**good, "env": {"A;B": "x"}})
    for script in ("launch-a.sh", "/s/../a b.sh", "/s/x;y.sh", "/s/", ""):
        with pytest.raises(Refused):
            language.create("a-one", script, **good)


def test_a_quoted_word_stays_on_one_line():
    assert "\n" not in language.quote("a\nb\r\t'x'")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("plain", "plain"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[201~x", "[201~x"),
        ("\x03\x7f\x9b\x00", ""),
        ("\té\n", "\té\n"),
        ("not \udcff UTF-8", "not \ufffd UTF-8"),
        ("🦀", "🦀"),
    ],
)
def test_what_is_typed_is_text_and_never_a_keystroke(text, typed):
    """I10."""
    assert language.typable(text) == typed
    assert language.typable(typed) == typed


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ("acted", ""),
        ("held 100|1700000000|||||0|", "pane is gone"),
        ("held 100|1700000000|%3|42|r1|1|0|a-one", "pane is dead"),
        ("held 100|1700000000|%3|42|r1|0|1|a-one", "pane is in copy mode"),
        ("held 100|1700000000|%3|42|r2|0|0|a-one", "another run"),
        ("held 100|1700000000|%3|43|r1|0|0|a-one", "another run"),
        ("held 100|1700000000|%3|42|r1|0|0|renamed", "the session was renamed"),
        ("held 101|1700000000|%3|42|r1|0|0|a-one", "another server"),
        ("held 100|1700000000|%3||r1|1|0|a-one", "another run"),
        (None, "tmux refused: no space"),
        ("", "tmux refused: no space"),
    ],
)
def test_a_guard_that_held_says_what_it_saw(seen, why):
    assert language.reason(seen, REF, "no space") == why


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        ("no server running on /tmp/tmux-0/x", Complaint.NO_SERVER),
        ("error connecting to /tmp/tmux-0/x (No such file or directory)", Complaint.NO_SERVER),
        ("error connecting to /tmp/tmux-0/x (Connection refused)", Complaint.NO_SERVER),
        ("error connecting to /tmp/tmux-0/x (Permission denied)", Complaint.OTHER),
        ("server exited unexpectedly", Complaint.LOST),
        ("lost server", Complaint.LOST),
        ("target pane has exited", Complaint.EXITED),
        ("can't find pane: %99", Complaint.NO_PANE),
        ("duplicate session: a-one", Complaint.TAKEN),
        ("a sentence of tomorrow", Complaint.OTHER),
        ("", Complaint.OTHER),
    ],
)
def test_a_complaint_is_known_by_its_pattern(complaint, kind):
    assert complaint_of(complaint) is kind


@pytest.mark.parametrize(
    ("complaint", "why"),
    [
        ("target pane has exited", "pane is dead"),
        ("can't find pane: %3", "pane is gone"),
        ("", "tmux refused: it did not say why"),
    ],
)
@pytest.mark.parametrize("answer", ["", None])
def test_an_act_that_tmux_itself_refused_says_why_and_blames_no_other_server(answer, complaint, why):
    assert language.reason(answer, REF, complaint) == why


def test_only_the_very_name_is_taken():
    said = "duplicate session: a-one\nno space"
    assert is_taken("a-one", said)
    assert not is_taken("one", said)
    assert not is_taken("a-on", said)


def test_an_answer_without_its_last_marker_is_no_answer():
    batch = Batch(["one", "two"])
    nonce = batch.program.split("'")[1].split()[0]
    last = f"{nonce} end 100|1700000000\n"
    whole = f"text\n{nonce} 0\nmore\n\nlines\n\n{nonce} 1\n{last}"
    assert batch.read(whole, "no space") == Said(("text", "more\n\nlines\n"), SERVER, "no space")
    assert batch.read(whole[whole.index("more") :]) == Said((None, "more\n\nlines\n"), SERVER)
    assert batch.read(f"{nonce} 0\n{last}") == Said(("", None), SERVER)
    for cut in range(len(whole)):
        assert batch.read(whole[:cut]) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [("tmux 3.3a", (3, 3)), ("tmux next-3.6", (3, 6)), ("tmux 3.2", (3, 2)), ("tmux master", (99, 0))],
)
def test_versions_are_read_as_tmux_writes_them(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("text", "how"),
    [
        *((f"tmux {version}", "proved") for version in PROVED),
        ("tmux 3.2a", "not among the proved versions"),
        ("tmux 3.4", "not among the proved versions"),
        ("tmux 3.8a", "not among the proved versions"),
        ("tmux next-3.8", "not among the proved versions"),
        ("tmux 3.9", "newer than any proved version"),
        ("tmux 4.0", "newer than any proved version"),
        ("tmux master", "newer than any proved version"),
        ("tmux 2.9a", "too old"),
    ],
)
def test_a_version_is_proved_or_named_as_what_it_is(text, how):
    assert standing(text) == how


def test_a_tmux_too_old_is_refused_with_what_to_install():
    with pytest.raises(Unavailable, match=r"tmux 2\.9a is too old: install tmux 3\.2"):
        parse_version("tmux 2.9a")


def test_a_log_is_renamed_with_its_predecessors_and_a_new_one_begun(tmp_path):
    log = tmp_path / "x.log"
    begin(str(log))
    for text in (b"one", b"two", b"three", b"four", b"five"):
        with log.open("ab") as pipe:
            pipe.write(text)
            inode = log.stat().st_ino
            rotate(str(log))
            pipe.write(b"!")  # the old writer ends what it has begun
        assert (tmp_path / "x.log.1").stat().st_ino == inode
        assert log.stat().st_size == 0
    assert [(tmp_path / f"x.log.{n}").read_bytes() for n in (1, 2, 3)] == [b"five!", b"four!", b"three!"]
    assert not (tmp_path / "x.log.4").exists()
    assert oct(log.stat().st_mode & 0o777) == "0o600"


def test_what_is_no_file_in_the_place_of_a_log_is_moved_aside(tmp_path):
    log = tmp_path / "x.log"
    os.mkfifo(log)
    begin(str(log))
    assert log.is_file()
    assert (tmp_path / "x.log.not-a-log").is_fifo()


def test_a_log_that_fills_up_at_once_waits_for_its_next_writer_and_is_told_once(tmp_path):
    """A table of looks: what stands there, and what is done about it."""
    log, piper, told, clock = tmp_path / "s.log", Piper(), [], [0.0]
    keeper = LogKeeper(piper, str(tmp_path), lambda: clock[0])
    ref = PaneRef(ServerId(1, 1), "s", "%1", 2, "run")

    def look(at, size, *, piped=True):
        clock[0] = at
        with log.open("ab") as file:
            file.truncate(size)
        piper.asked.clear()
        pane = PaneView(ref, dead=False, piped=piped, history=int(at * 10))
        keeper.keep([pane], lambda kind, _session, _why: told.append(kind))
        return bool(piper.asked)

    full = SOFT_CAP + 1
    assert not look(0, 10)
    assert look(100, full)
    assert not look(101, 10)
    assert not look(102, full)
    assert not look(103, full + 10, piped=False)
    assert told == ["agent.flooded"]
    assert keeper.flooded == ["s"]
    assert look(131, full, piped=False)
    assert not look(132, full, piped=False)
    assert told == ["agent.flooded"]
    assert look(162, full, piped=False)
    assert not look(163, 10)
    assert keeper.flooded == ["s"]
    assert not look(200, 20)
    assert keeper.flooded == []
    assert look(201, 20, piped=False)  # ended for another reason
    assert not look(202, 20, piped=False)
    assert not look(203, 20)
    assert told == ["agent.flooded", "agent.log_resumed"]


class Piper:
    def __init__(self):
        self.asked = []

    def log_again(self, sessions):
        self.asked += sessions


def test_a_process_is_as_old_as_the_clock_that_counts_a_sleep_says(monkeypatch):
    row = procfs.parse(b"7 (a) S 1 5 6 0 5 0 0 0 0 0 100 50 0 0 20 0 1 0 999 1 2")
    born = row.start / os.sysconf("SC_CLK_TCK")
    slept = {time.CLOCK_BOOTTIME: born + 7200.0, time.CLOCK_MONOTONIC: born + 60.0}
    monkeypatch.setattr(time, "clock_gettime", slept.__getitem__)
    assert procfs.age(row) == pytest.approx(7200.0)


@pytest.mark.parametrize(
    ("agent", "child", "working"),
    [(900.0, 60.0, True), (900.0, 896.0, False), (9000.0, 3599.0, True), (9000.0, 3600.0, False)],
)
def test_a_child_is_at_work_unless_it_came_with_its_agent_or_is_old(agent, child, working):
    made = [Proc(pid=n, start=1, ppid=0, sid=1, name="x", age=age) for n, age in enumerate((agent, child))]
    assert eye.at_work(*made) is working


def test_a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields():
    text = b"7 (a) b (c)) S 1 5 6 0 5 0 0 0 0 0 100 50 0 0 20 0 1 0 999 1 2"
    row = procfs.parse(text)
    assert (row.pid, row.name, row.state, row.ppid, row.sid, row.start) == (
        7, "a) b (c)", "S", 1, 6, 999,
    )  # fmt: skip
    assert procfs.parse(b"") is None
