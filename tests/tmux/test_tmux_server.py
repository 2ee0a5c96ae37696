"""What the tmux port promises, on a real server, by processes and by the control client alike."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from fleet.core.seen import PaneRef
from fleet.host.tmux.client import TmuxServer, resolve_socket
from fleet.host.tmux.language import Refused
from fleet.ports import Unavailable
from tests.deadlines import patience
from tests.outcomes import DONE, EXISTS
from tests.tmux.conftest import make_floor, tear_down, until

pytestmark = pytest.mark.tmux


def test_a_socket_nobody_listens_on_is_positively_no_server(speaker):
    assert speaker.listing().server is None
    ref = PaneRef(server=None, session="a-x", pane="%0", pid=2, run="r")
    assert speaker.capture([ref]) == {}


def test_a_created_session_is_listed_with_its_stamps_and_size(speaker, floor):
    launch = floor.launch("a-one", "exec sleep 1000")
    assert speaker.create([launch]) == {"a-one": DONE}
    view = speaker.listing().panes[0]
    assert (view.ref.session, view.ref.run, view.dead) == ("a-one", launch.run, False)
    size = floor.raw("display-message", "-p", "-t", "=a-one:", "#{window_width}x#{window_height}")
    assert size.strip() == "200x50"


def test_a_taken_name_is_reported_and_the_holder_is_neither_stamped_nor_replaced(speaker, floor):
    floor.start("a-other")
    floor.raw("new-session", "-d", "-s", "a-one", "sleep 1000")
    assert speaker.create([floor.launch("a-one", "exec sleep 1")]) == {"a-one": EXISTS}
    listing = speaker.listing()
    assert [p.ref.session for p in listing.panes] == ["a-other"]
    assert listing.foreign == ("a-one",)


def test_one_bad_launch_does_not_spoil_the_batch(speaker, floor):
    floor.start("a-b")
    launches = [floor.launch(name, "exec sleep 1000") for name in ("a-a", "a-b", "a-c")]
    assert speaker.create(launches) == {"a-a": DONE, "a-b": EXISTS, "a-c": DONE}


def test_a_server_without_sessions_is_a_server_and_not_a_failure(speaker, floor):
    view = floor.start("a-one")
    assert speaker.remove([view.ref]) == {"a-one": ""}
    listing = speaker.listing()
    assert listing.server == view.ref.server
    assert listing.panes == ()


def test_sessions_whose_names_extend_ours_are_never_hit(speaker, floor):
    ours = floor.start("a-b")
    for decoy in ("a-bb", "a-b2", "a-", "a", "b"):
        floor.raw("new-session", "-d", "-s", decoy, "sleep 1000")
    assert speaker.remove([ours.ref]) == {"a-b": ""}
    assert speaker.remove([ours.ref]) == {"a-b": "pane is gone"}
    assert set(speaker.listing().foreign) == {"a-bb", "a-b2", "a-", "a", "b"}


def test_an_act_for_another_run_or_another_server_does_nothing(speaker, floor):
    view = floor.start("a-one", "exec cat")
    other_run = PaneRef(view.ref.server, "a-one", view.ref.pane, view.ref.pid, "someone-else")
    other_pid = PaneRef(view.ref.server, "a-one", view.ref.pane, view.ref.pid + 1, view.ref.run)
    past = type(view.ref.server)(view.ref.server.pid, view.ref.server.started - 1)
    other_server = PaneRef(past, "a-one", view.ref.pane, view.ref.pid, view.ref.run)
    refused = ((other_run, "another run"), (other_pid, "another run"), (other_server, "another server"))
    for ref, why in refused:
        assert speaker.remove([ref]) == {"a-one": why}
        assert speaker.paste(ref, "x") == why
        assert speaker.press(ref, ["Enter"]) == why
    assert speaker.capture([other_server]) == {}
    assert floor.screen("a-one").strip() == ""


def test_nothing_is_typed_into_a_dead_pane_or_into_copy_mode(speaker, floor):
    view = floor.start("a-one", "exec cat")
    floor.raw("copy-mode", "-t", "=a-one:")
    assert floor.view("a-one").in_mode
    assert speaker.paste(view.ref, "x") == "pane is in copy mode"
    assert speaker.press(view.ref, ["Enter"]) == "pane is in copy mode"
    floor.raw("send-keys", "-t", "=a-one:", "-X", "cancel")
    os.kill(view.ref.pid, signal.SIGKILL)
    until(lambda: floor.view("a-one").dead)
    assert speaker.paste(view.ref, "x") == "pane is dead"
    assert speaker.press(view.ref, ["Enter"]) == "pane is dead"
    assert floor.raw("list-buffers") == ""


def test_pasted_text_arrives_byte_for_byte_and_leaves_no_buffer(speaker, floor):
    text = "a;\n'b' \"c\" $HOME $(x) `y` #{pid} #(z) %d ~ \\ \\n {brace} é 漢\ttab; -x\n;"
    size = len(text.encode())
    body = f"stty raw -echo; printf ready; exec head -c {size} >got"
    view = floor.start("a-one", body)
    until(lambda: "ready" in floor.screen("a-one"))
    assert speaker.paste(view.ref, text) == ""
    path = os.path.join(floor.log_dir, "state", "got")
    until(lambda: os.path.exists(path) and os.path.getsize(path) == len(text.encode()))
    with open(path, "rb") as file:
        assert file.read() == text.encode()
    assert floor.raw("list-buffers") == ""


def test_a_paste_is_bracketed_only_for_a_program_that_asked_and_cannot_break_out(speaker, floor):
    body = "stty raw -echo; printf '\\033[?2004hready'; exec dd of=got bs=1 count=%d 2>/dev/null"
    expected = b"\x1b[200~one\ntwo[201~rm\x1b[201~"
    view = floor.start("a-one", body % len(expected))
    until(lambda: "ready" in floor.screen("a-one"))
    assert speaker.paste(view.ref, "one\r\ntwo\x1b[201~\x03rm") == ""
    path = os.path.join(floor.log_dir, "state", "got")
    until(lambda: os.path.exists(path) and os.path.getsize(path) == len(expected))
    with open(path, "rb") as file:
        assert file.read() == expected


def test_a_large_paste_arrives_whole(speaker, floor):
    text = "".join(f"line {n} 'q' $x\n" for n in range(8000))
    body = f"stty raw -echo; printf ready; exec head -c {len(text)} >got"
    view = floor.start("a-one", body)
    until(lambda: "ready" in floor.screen("a-one"))
    assert speaker.paste(view.ref, text) == ""
    path = os.path.join(floor.log_dir, "state", "got")
    until(lambda: os.path.exists(path) and os.path.getsize(path) == len(text))
    with open(path, encoding="ascii") as file:
        assert file.read() == text


@pytest.mark.parametrize("key", ["Entre", "", "kill-server ;", "C-", "F13", "Enter Enter"])
def test_a_word_that_is_no_key_is_refused_instead_of_typed(floor, key):
    view = floor.start("a-one", "exec cat")
    with pytest.raises(Refused):
        floor.server.press(view.ref, [key])


def test_a_screen_is_captured_with_wrapped_lines_joined_and_nothing_can_forge_its_end(speaker, floor):
    long = "x" * 350
    forged = "'%end 1 2 0' '%begin 1 2 0' %exit after"
    body = f"printf '%s\\n' {long} {forged}; exec sleep 1000"
    view = floor.start("a-one", body)
    other = floor.start("a-two", "echo second; exec sleep 1000")
    until(lambda: "after" in floor.screen("a-one") and "second" in floor.screen("a-two"))
    screens = speaker.capture([view.ref, other.ref])
    assert screens["a-one"].split("\n")[:5] == [long, "%end 1 2 0", "%begin 1 2 0", "%exit", "after"]
    assert screens["a-two"].split("\n")[0] == "second"


def test_a_pane_that_is_gone_is_left_out_of_the_captures(speaker, floor):
    gone, here = floor.start("a-gone"), floor.start("a-here", "echo still; exec sleep 1000")
    floor.server.remove([gone.ref])
    until(lambda: "still" in floor.screen("a-here"))
    assert list(speaker.capture([gone.ref, here.ref])) == ["a-here"]


def test_an_exit_code_and_a_signal_are_evidence_once_reaped(speaker, floor):
    floor.start("a-code", "exit 7")
    killed = floor.start("a-signal")
    os.kill(killed.ref.pid, signal.SIGKILL)

    def told():
        speaker.reap()
        panes = {p.ref.session: p for p in speaker.listing().panes}
        return panes["a-code"].exit_code == 7 and panes["a-signal"].exit_signal == 9

    until(told)


def test_the_log_misses_nothing_from_the_first_byte_on_and_is_private(floor):
    floor.start("a-one", "echo first; echo second; exec sleep 1000")
    path = os.path.join(floor.log_dir, "logs", "a-one.log")
    until(lambda: os.path.getsize(path) >= len("first\r\nsecond\r\n"))
    with open(path, "rb") as file:
        assert file.read() == b"first\r\nsecond\r\n"
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name",
    ["plain", "with space", "quo'te", 'dou"ble', "#(touch pwned)", "#{pid}", "$(touch pwned)",
     "`touch pwned`", "a;b", "a\\b", "100%d %H", "~", "-dash", "é漢", "new\nline", "a\tb", "{x}", "a|b",
     "*?[x]", "!h"],
)  # fmt: skip
def test_a_project_path_is_data_whatever_it_contains(tmp_path, name):
    floor = make_floor(str(tmp_path / name))
    try:
        floor.start("a-one", "pwd; exec sleep 1000")
        log = os.path.join(floor.log_dir, "logs", "a-one.log")
        until(lambda: os.path.getsize(log) > 0)
        pid = floor.view("a-one").ref.pid
        assert os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(os.path.join(floor.log_dir, "state"))
        assert not [f for _, _, files in os.walk(tmp_path) for f in files if f == "pwned"]
    finally:
        tear_down(floor)


def test_what_a_pane_inherits_is_what_its_launch_gives_and_never_the_callers(floor, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", "canary-1")
    monkeypatch.setenv("TMUX", "/tmp/elsewhere,1,0")
    monkeypatch.setenv("AO_RUN_ID", "the-callers")
    floor.start("a-one", env={"GIVEN": "it's \n $HOME #(x)"})
    view = floor.start("a-two")
    environ = {}
    for session in ("a-one", "a-two"):
        pid = floor.view(session).ref.pid
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ[session] = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if pair)
    assert environ["a-one"][b"GIVEN"] == b"it's \n $HOME #(x)"
    assert b"GIVEN" not in environ["a-two"]
    assert b"CANARY_KEY" not in environ["a-one"]
    assert environ["a-two"][b"AO_RUN_ID"] == view.ref.run.encode()
    with open(f"/proc/{view.ref.server.pid}/cmdline", "rb") as file:
        assert b"GIVEN" not in file.read()
    found = floor.server.inherited(["a-one", "a-two", "a-none"])
    assert "GIVEN" not in found.names
    assert found.given["a-one"]["GIVEN"] == "it's \n $HOME #(x)"
    assert "GIVEN" not in found.given["a-two"]
    assert "a-none" not in found.given


def test_a_server_that_hangs_is_unavailable_and_not_gone(floor):
    view = floor.start("a-one")
    floor.server.timeout = 0.5
    os.kill(view.ref.server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match=r"within 0\.5\d* s"):
            floor.server.listing()
    finally:
        os.kill(view.ref.server.pid, signal.SIGCONT)
    floor.server.timeout = 20.0
    assert floor.server.listing().server == view.ref.server


def test_a_killed_server_is_founded_again_by_the_next_create(speaker, floor):
    view = floor.start("a-one")
    speaker.listing()
    os.kill(view.ref.server.pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{view.ref.server.pid}/exe"))
    assert speaker.create([floor.launch("a-one", "exec sleep 1000")]) == {"a-one": DONE}
    fresh = until(lambda: speaker.listing().panes)
    assert fresh[0].ref.server != view.ref.server


def test_two_projects_on_one_server_do_not_see_each_other_as_theirs(floor):
    floor.start("a-one")
    other = TmuxServer(os.path.basename(floor.socket), "p2", floor.log_dir, socket_path=floor.socket)
    assert other.listing().panes == ()
    assert other.listing().foreign == ("a-one",)


def test_a_split_by_the_user_is_not_mistaken_for_the_agent(speaker, floor):
    view = floor.start("a-one")
    floor.raw("split-window", "-b", "-t", "=a-one:", "sleep 1000")
    floor.raw("new-window", "-t", "=a-one:", "sleep 1000")
    assert [p.ref for p in speaker.listing().panes] == [view.ref]


def test_the_users_own_server_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    floor = make_floor(str(tmp_path))
    floor.socket = resolve_socket("default")
    assert floor.socket.startswith(str(tmp_path))
    os.makedirs(os.path.dirname(floor.socket), mode=0o700)
    floor.server = TmuxServer("default", "p1", floor.log_dir, socket_path=floor.socket)
    try:
        floor.raw("new-session", "-d", "-s", "mine", "sleep 1000")
        before = floor.raw("show-options", "-g"), floor.raw("show-environment", "-g")
        view = floor.start("a-one", env={"SECRET": "s"})
        assert view.ref.session == "a-one"
        assert floor.server.listing().foreign == ("mine",)
        assert (floor.raw("show-options", "-g"), floor.raw("show-environment", "-g")) == before
    finally:
        tear_down(floor)


def test_eight_processes_creating_one_session_make_one(floor):
    floor.start("a-zero")
    code = (
        "import sys; from fleet.host.tmux.client import TmuxServer; from fleet.ports import Launch;"
        "name, log, script, run = sys.argv[1:];"
        "print(TmuxServer(name, 'p1', log, timeout=30).create("
        "[Launch('a-one', script, run, 'a-one.log', {'PATH': '/usr/bin:/bin'})])['a-one'].outcome)"
    )
    launch = floor.launch("a-one", "exec sleep 1000")
    argv = ["python3", "-c", code, os.path.basename(floor.socket), floor.log_dir, launch.script, launch.run]
    racers = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = sorted(racer.communicate(timeout=patience(60))[0].strip() for racer in racers)
    assert said == ["done"] + ["exists"] * 7


def test_a_named_socket_is_where_tmux_itself_would_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    floor = make_floor(str(tmp_path))
    try:
        floor.start("a-one")
        assert os.path.exists(floor.socket)
        assert floor.socket.startswith(str(tmp_path))
    finally:
        tear_down(floor)


def test_a_retired_server_ends_with_its_last_session_and_not_before(floor):
    one, two = floor.start("a-one"), floor.start("a-two")
    floor.server.remove([one.ref])
    floor.server.retire()
    assert [p.ref for p in floor.server.listing().panes] == [two.ref]
    floor.server.remove([two.ref])
    until(lambda: floor.server.listing().server is None)
    floor.server.retire()


def test_a_session_created_after_retirement_keeps_the_server(floor):
    floor.start("a-one")
    floor.server.retire()
    two = floor.start("a-two")
    floor.server.remove([floor.view("a-one").ref, two.ref])
    assert floor.server.listing().server == two.ref.server
