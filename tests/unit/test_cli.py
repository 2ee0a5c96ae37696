"""The command line: words in, a sentence and an exit code out, never a traceback."""

from __future__ import annotations

import argparse
import importlib
import inspect
import io as streams
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import bootstrap, config, engine, ports
from fleet.config.problems import ConfigError, Problem
from fleet.core.model import Backend, Fleet, Member
from fleet.host import locks, packages
from fleet.host.tmux import dialects, server
from fleet.store import documents, outbox
from fleet.text import escaped, render
from fleet.verbs import arguments, completions, doctor, init, logs, main
from fleet.verbs import io as verb_io
from tests.deadlines import patience
from tests.programs import COMMON, need

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
[defaults]
session_prefix = "t-"
log_dir = "state"
backend = "demo"

[[agent]]
name = "builder"
kind = "persistent"
prompt = "go"

[[service]]
name = "clean"
command = "sleep 9"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "agents.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(project):
    path = project / "state" / "logs" / "t-builder.log"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"line {n}\n" for n in range(250)))
    return path


def agents(*words, **options):
    """The real program, as a user runs it."""
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL} | options
    return subprocess.run([sys.executable, str(ROOT / "agents.py"), *map(str, words)], **options)


def call(*words):
    """The same in this process: exit code, stdout, stderr."""
    out, err = streams.StringIO(), streams.StringIO()
    voice = verb_io.Io(out, err)
    try:
        code = main.run(words, voice)
    except SystemExit as leaving:
        code = leaving.code
    except Exception as fault:
        code = main.told(fault, voice)
    return code, out.getvalue(), err.getvalue()


# -- finding the verb and the config ---------------------------------------------------------------------


@pytest.mark.parametrize("place", ["before", "after", "both", "equals"])
def test_config_may_stand_before_or_after_the_verb(project, place):  # R016, T03
    path = str(project / "agents.toml")
    words = {
        "before": ["--config", path, "validate"],
        "after": ["validate", "--config", path],
        "both": ["--config", path, "validate", "--config", "./agents.toml"],
        "equals": [f"--config={path}", "validate"],
    }[place]
    code, out, err = call(*words)
    assert (code, err) == (0, "")
    assert "fine: 1 agent," in out


@pytest.mark.parametrize("verb", ["validate", "status"])  # one has a parser, one may do without
@pytest.mark.parametrize("place", ["around", "before", "after"])
def test_two_different_configs_are_refused(project, verb, place):  # T03
    one, two = ("--config", "one.toml"), ("--config", "two.toml")
    words = {"around": (*one, verb, *two), "before": (*one, *two, verb), "after": (verb, *one, *two)}[place]
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert err == "error: --config was given twice: one.toml and two.toml (try: name one file)\n"


@pytest.mark.parametrize("words", [["--config=", "status"], ["status", "--config", ""], ["--config"]])
def test_a_config_without_a_name_is_refused(project, words):
    code, out, err = call(*words)
    assert (code, out, err) == (2, "", "error: --config needs a path (try: agents.py --help)\n")


def test_a_missing_config_says_what_to_do(tmp_path, monkeypatch):  # R014
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "BESIDE", str(tmp_path))
    code, _, err = call("validate")
    assert code == 2
    assert "agents.py init" in err


def test_the_fallback_config_is_announced(project, tmp_path, monkeypatch):  # R015, T04
    monkeypatch.setattr(engine, "BESIDE", str(project))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, _, err = call("validate")
    assert code == 0
    assert err == f"using {project}/agents.toml (there is no agents.toml here)\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["validat"], 'did you mean "validate"?'),
        (["xyzzy"], "unknown verb 'xyzzy'"),
        (["start"], 'did you mean "up"?'),
        (["stop"], 'did you mean "down"?'),
        (["ps"], 'did you mean "status"?'),
        (["--confg", "x", "validate"], "unknown option --confg"),
        (["--config"], "--config needs a path"),
        (["logs"], "NAME"),
        (["logs", "builder", "-n", "many"], "not a number of lines"),
        (["validate", "--wrong"], "--wrong"),
        (["logs", "bulider"], 'did you mean "builder"?'),
        (["completions", "tcsh"], "tcsh"),
        (["events", "-n", "-1"], "not a number of lines"),
        (["restart", "builder", "--timeout", "nan"], "not a number of seconds"),
        (["send", "builder", "x", "--timeout", "-1"], "not a number of seconds"),
        (["wait", "--agent", "builder", "--state", "RUNING"], 'did you mean "RUNNING"?'),
        (["wait", "--agent", "watchdog", "--state", "RUNNING"], "no such states"),
        (["pause", "watchdog"], "cannot be paused"),
        (["unpause", "watchdog"], "cannot be unpaused"),
        (["reset", "watchdog"], "restart watchdog"),
        (["validate", "--explain", ""], "no such key"),
        (["help", "xyzzy"], "unknown verb"),
        (["validate", "x.toml"], "(try: agents.py --config x.toml validate)"),
        (["events", "--type", "agent.dide"], 'did you mean "agent.died"?'),
        (["replay", "nofile"], "state/bundles/"),
        (["pause", "builder", "--until", "yesterday"], '"tomorrow 22:00"'),
        (["events", "--since", "never"], '"yesterday 22:00"'),
        (["demo", "--json"], "events --json"),
    ],
)
def test_a_wrong_word_is_named_and_the_exit_code_is_two(project, words, says):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert says in err


def test_help_about_a_verb_is_that_verbs_help():
    assert call("help", "validate") == call("validate", "--help")


def test_a_help_fits_a_narrow_terminal_word_for_word(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    call("up", "--help")
    broad = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    call("up", "--help")
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.split() == broad.split()


def test_an_explained_key_fits_a_narrow_terminal_word_for_word(monkeypatch):
    screen = streams.StringIO()
    screen.isatty = lambda: True
    screen.fileno = lambda: 0
    monkeypatch.setattr(verb_io.os, "get_terminal_size", lambda fd: os.terminal_size((60, 50)))
    assert main.run(["validate", "--explain", "watchdog"], verb_io.Io(screen, screen)) == 0
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert screen.getvalue().split() == call("validate", "--explain", "watchdog")[1].split()


def test_help_lists_every_verb_that_is_there_and_no_other():
    code, out, _ = call("--help")
    listed = {line.split()[0] for line in out.splitlines() if line.startswith("  ")}
    there = {
        path.stem for path in (ROOT / "fleet/verbs").glob("*.py") if "\nARGUMENTS = " in path.read_text()
    }
    assert code == 0
    assert listed == there - {"watchdog"}
    assert call()[0] == 2


@pytest.mark.parametrize("verb", list(main.verbs()))
def test_every_verb_explains_itself(verb):
    code, _, err = call(verb, "--help")
    assert (code, err) == (0, "")


def test_a_verb_module_has_the_agreed_form():
    for verb, offer in main.verbs().items():
        module = importlib.import_module(f"fleet.verbs.{verb}")
        assert offer.group in {*main.GROUPS, "inner"}, verb
        assert list(inspect.signature(module.run).parameters) == ["args", "io"], verb
        first, *rest = (arguments.parser_for(verb, module).description or "").strip().splitlines()
        assert first == f"{offer.text}.", "the overview and the verb say the same"
        assert len(first) <= 71, verb
        [example] = [line for line in rest if line.startswith("Example: ")]
        assert example.startswith(f"Example: agents.py {verb}"), verb


# -- a voice that survives its listeners -----------------------------------------------------------------


def test_a_reader_that_leaves_neither_stops_a_verb_nor_shows_a_traceback(log):  # T19
    log.write_text("a line of some length\n" * 100_000)  # more than any pipe holds
    script = f"{sys.executable} {ROOT}/agents.py logs builder -n 100000 | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["a line of some length", "0"]
    assert done.stderr == ""


def test_work_goes_on_after_the_reader_left():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        voice = verb_io.Io(gone, streams.StringIO())
        for _ in range(3):
            voice.print("x" * 100_000)
        assert voice.gone
        assert voice.close(7) == 7
        os.dup2(os.open(os.devnull, os.O_WRONLY), gone.fileno())  # for the close of this very file


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_output_that_could_not_be_written_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = agents("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "error: the output could not be written: No space left on device\n"


def test_closed_streams_and_odd_locales_are_survived():
    for redirect in (">&-", "2>&-", ">&- 2>&-"):
        assert subprocess.run(["bash", "-c", f"{sys.executable} {ROOT}/agents.py --help {redirect}"],
                              stdout=subprocess.DEVNULL).returncode == 0  # fmt: skip
    done = agents("logs", "\udcff", env={**os.environ, "PYTHONIOENCODING": "ascii"}, cwd=ROOT)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (KeyboardInterrupt(), 130, ""),
        (verb_io.Fail("no", hint="yes"), 1, "error: no (try: yes)\n"),
        (BrokenPipeError(), 141, ""),
        (PermissionError(13, "Permission denied", "/x"), 1, "error: /x: Permission denied\n"),
        (
            RuntimeError("oops"),
            1,
            "error: a bug of agent-fleet: RuntimeError: oops (try: AO_DEBUG=1 shows where)\n",
        ),
        (SystemExit(3), 3, ""),
        (locks.LockError("somebody has it: wait"), 1, "error: somebody has it: wait\n"),
        (outbox.OutboxFull("too many: wait"), 1, "error: too many: wait\n"),
        (documents.StoreError("too new: update"), 1, "error: too new: update\n"),
        (ports.Unavailable("no tmux: install it"), 1, "error: no tmux: install it\n"),
        (bootstrap.CannotBuild("no network: wait"), 1, "error: no network: wait\n"),
        (
            ConfigError([Problem("a.toml", 1, "", "one"), Problem("a.toml", 2, "k", "two")]),
            2,
            "error: a.toml:1: one\nerror: a.toml:2: k: two\n",
        ),
    ],
)
def test_every_way_to_end_is_an_exit_code(monkeypatch, capsys, raised, code, says):
    def verb(argv, io):
        raise raised

    monkeypatch.setattr(main, "run", verb)
    monkeypatch.setattr(verb_io.Io, "hang_up", lambda self: None)
    assert main.main(["status"]) == code
    assert capsys.readouterr().err == says


def test_colour_is_only_for_a_person_who_wants_it(monkeypatch):
    terminal_stream = streams.StringIO()
    terminal_stream.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    assert verb_io.Io(terminal_stream).paint("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert verb_io.Io(terminal_stream).paint("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    assert verb_io.Io(streams.StringIO()).paint("x", "red") == "x"


def test_status_is_coloured_at_a_terminal_and_nothing_of_it_is_spelt_out(project, monkeypatch):
    screen = streams.StringIO()
    screen.isatty = lambda: True
    screen.fileno = lambda: 0
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(verb_io.os, "get_terminal_size", lambda fd: os.terminal_size((200, 50)))
    monkeypatch.setenv("TMUX_TMPDIR", str(project))  # nobody's server
    assert main.run(["status"], verb_io.Io(screen, screen)) == 0
    shown = screen.getvalue()
    assert "\x1b[2mSTOPPED\x1b[0m" in shown
    assert "\\x1b" not in shown


@given(st.text())
def test_nothing_that_moves_a_cursor_or_turns_text_around_reaches_a_terminal(text):
    shown = escaped(text)
    assert shown.isprintable()
    assert escaped(shown) == shown


def test_hostile_characters_are_shown_not_obeyed():
    assert escaped("a\x1b[2Jb\u202ec") == "a\\x1b[2Jb\\u202ec"


def test_facts_are_printed_without_control_characters_but_with_our_colours():
    out = streams.StringIO()
    voice = verb_io.Io(out)
    voice.print("a\x1b[2Jb\x07\n\x1b[31mred\x1b[0m \x1b[8mhidden \x9b2J\u202e")
    voice.json({"a": "\x1b[2J\x7f"})
    line, facts = out.getvalue().split("\n{", 1)
    assert line == "a\\x1b[2Jb\\x07\n\x1b[31mred\x1b[0m \\x1b[8mhidden \\x9b2J\\u202e"
    assert json.loads("{" + facts) == {"a": "\x1b[2J\x7f"}


def rendered(header, rows, limit=0):
    return list(render([name.upper() for name in header], rows, limit=limit, paint=lambda text, colour: text))


def test_columns_line_up_for_wide_and_combining_characters():
    lines = rendered(["name", "state"], [["日本", "up"], ["e\u0301a", ("down", "red")], ["abcdef", "x"]])
    assert lines == ["NAME    STATE", "日本    up", "e\u0301a      down", "abcdef  x"]


def test_a_narrow_terminal_cuts_the_last_column_only():
    assert rendered(["a", "b"], [["name", "x" * 50]], limit=20)[1] == "name  " + "x" * 13 + "…"
    assert rendered(["a", "b"], [["name", "x" * 50]])[1] == "name  " + "x" * 50


# -- logs ------------------------------------------------------------------------------------------------


def test_logs_prints_the_last_hundred_lines_and_ends(log):  # T17
    code, out, _ = call("logs", "builder")
    assert code == 0
    assert out.splitlines() == [f"line {n}" for n in range(150, 250)]
    assert call("logs", "builder", "-n", "2")[1] == "line 248\nline 249\n"
    assert call("logs", "builder", "-n", "0")[1] == ""


def test_a_long_log_is_read_from_its_end(log):
    log.write_text("".join(f"{n:07d} {'x' * 200}\n" for n in range(2000)))
    assert [line[:7] for line in call("logs", "builder", "-n", "700")[1].splitlines()] == [
        f"{n:07d}" for n in range(1300, 2000)
    ]


def test_a_missing_log_is_exit_one_with_the_path(project):  # T17
    code, out, err = call("logs", "clean")
    assert (code, out) == (1, "")
    assert "state/logs/t-clean.log" in err


def test_events_are_chosen_by_type_or_group_and_a_slip_in_a_name_is_named(project):
    (project / "state").mkdir()
    kinds = {"agent.died": "builder", "agent.ready": "gone", "phase.set": ""}
    records = [{"ts": 1.0, "seq": 1, "type": kind, "agent": name} for kind, name in kinds.items()]
    (project / "state" / "events.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))

    def types(*words):
        code, out, err = call("--json", "events", *words)
        return code, [json.loads(line)["type"] for line in out.splitlines()], err

    assert types("--type", "agent") == types("--type", "agent.") == (0, ["agent.died", "agent.ready"], "")
    assert types("--type", "agent.died")[1] == ["agent.died"]
    assert types("--agent", "gone")[1] == ["agent.ready"], "an agent that is in the file no more"
    assert types("--type", "tokens") == (0, [], "no event fits\n")
    code, shown, err = types("--agent", "bulider")
    assert (code, shown, 'did you mean "builder"?' in err) == (2, [], True)


def test_events_that_cannot_be_read_are_not_called_none(project):
    assert "there are no events yet" in call("events")[2]
    (project / "state").write_text("a file where a directory should be")
    code, _, err = call("events")
    assert (code, "Not a directory" in err) == (1, True)


def test_control_sequences_are_taken_out_unless_asked_for(log):
    log.write_bytes(b"\x1b[31mred\x1b[0m\r\n10%\r20%\rdone\r\n\xff\n")
    assert call("logs", "builder")[1] == "red\ndone\n\ufffd\n"
    assert call("logs", "builder", "--raw")[1] == "\x1b[31mred\x1b[0m\r\n10%\r20%\rdone\r\n\ufffd\n"


def test_following_goes_on_over_truncation_and_replacement(log):
    follower = subprocess.Popen(
        [sys.executable, str(ROOT / "agents.py"), "logs", "-f", "-n", "1", "builder"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert follower.stdout.readline() == "line 249\n"
        with log.open("a") as file:
            file.write("appended\n")
        assert follower.stdout.readline() == "appended\n"
        log.write_text("after truncation\n")
        assert follower.stdout.readline() == "after truncation\n"
        fresh = log.with_suffix(".new")
        fresh.write_text("another file\n")
        fresh.replace(log)
        assert follower.stdout.readline() == "another file\n"
        with log.open("a") as file:
            file.write("the last of a full log\n")
        log.rename(f"{log}.1")
        log.write_text("the first of the next\n")
        assert follower.stdout.readline() == "the last of a full log\n"
        assert follower.stdout.readline() == "the first of the next\n"
        follower.stdout.close()  # the reader leaves: the follower ends, though nothing more is written
        assert follower.wait(timeout=patience(60)) == 0
    finally:
        follower.kill()
        follower.wait()


def test_tail_leaves_the_file_at_its_end(log):
    with log.open("rb") as file:
        logs.tail(file, 3)
        assert file.read() == b""


# -- attach ----------------------------------------------------------------------------------------------


def test_attach_prints_the_exact_command(project):
    code, out, _ = call("attach", "-r", "--print", "builder")
    assert (code, out) == (0, "tmux -L ao-t attach-session -r -t =t-builder:\n")
    assert call("attach", "--print", "watchdog")[1] == "tmux -L ao-t attach-session -t =t-watchdog:\n"


def test_a_recorded_socket_elsewhere_is_used_by_its_path(project):
    (project / "state" / "state").mkdir(parents=True)
    (project / "state" / "state" / server.RECORDED).write_text("/run/other/ao-t\n")
    assert (
        call("attach", "--print", "builder")[1] == "tmux -S /run/other/ao-t attach-session -t =t-builder:\n"
    )


def test_a_nested_client_does_not_know_of_the_outer_tmux(monkeypatch):
    monkeypatch.setenv("TMUX", "/tmp/outer,1,0")
    assert "TMUX" not in server.environment(["tmux", "attach-session"])
    assert "TMUX" in server.environment(["tmux", "switch-client"])


# -- init ------------------------------------------------------------------------------------------------


@pytest.fixture
def templates():
    if not all((ROOT / "prompts" / name).exists() for name in init.PROMPTS):
        pytest.skip("the prompt templates are not there yet")


def test_a_starter_validates_at_once_and_is_kept_the_second_time(
    tmp_path, monkeypatch, templates
):  # R147, T16
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("init", "My Project!")
    assert code == 0
    root = tmp_path / "My Project!"
    assert 'session_prefix = "my-project-"' in (root / "agents.toml").read_text()
    assert (root / ".gitignore").read_text() == ".ao-state/\nwork/\n"
    code, out, err = call("validate", "--config", "My Project!/agents.toml")
    assert code == 0, err
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    code, out, _ = call("init", "My Project!")
    assert code == 0
    assert "wrote" not in out
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before


def test_init_here_adds_to_an_ignore_file_and_touches_nothing_else(tmp_path, monkeypatch, templates):  # T16
    monkeypatch.chdir(tmp_path)
    Path("agents.toml").write_text("mine")
    Path(".gitignore").write_text("*.log")
    document = json.loads(call("init", "--json")[1])
    assert Path("agents.toml").read_text() == "mine"
    assert Path(".gitignore").read_text() == "*.log\n.ao-state/\nwork/\n"
    assert "agents.toml" in document["kept"]
    assert "agents.toml" not in document["written"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("My Project!", "my-project-"),
        ("...", "fleet-"),
        ("日本", "fleet-"),
        ("a" * 60, "a" * 24 + "-"),
        ("x.y:z", "x-y-z-"),
    ],
)
def test_a_prefix_is_made_of_what_tmux_allows(name, expected):
    assert init.prefix(f"/somewhere/{name}") == expected


# -- doctor, completions, version ------------------------------------------------------------------------


def test_doctor_names_each_fault_and_its_cure(project, monkeypatch):
    (project / "state").mkdir(mode=0o755)
    (project / "agents.toml").write_text(CONFIG.replace('prompt = "go"', 'prompt = "go"\ndir = "nowhere"'))
    code, out, _ = call("doctor", "--json")
    checks = {(c["what"], c["level"]): c for c in json.loads(out)["checks"]}
    assert code == 1
    assert ("log_dir", "warn") in checks
    assert checks["log_dir", "warn"]["fix"].startswith("chmod 700 ")
    assert ("agent builder", "fail") in checks
    assert all(c["fix"] for c in checks.values() if c["level"] != "ok")


def test_doctor_names_a_variable_that_a_notification_lacks(project, monkeypatch):
    (project / "agents.toml").write_text(f'{CONFIG}[[notify]]\nto = "url"\nurl_env = "A_HOOK"\n')
    fleet = config.load("agents.toml")
    assert [(c.level, c.detail) for c in doctor.targets(fleet)] == [
        (doctor.Level.WARN, "the variable A_HOOK is not set here")
    ]
    monkeypatch.setenv("A_HOOK", "json://127.0.0.1")
    assert list(doctor.targets(fleet)) == []


def test_doctor_works_with_no_fleet_and_no_tmux(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "BESIDE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, _ = call("doctor")
    assert code == 1
    assert "fail  tmux: not found" in out
    assert "warn  config: there is no agents.toml here" in out


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (dialects.PROVED[0], f"ok    tmux: {dialects.PROVED[0]}\n"),
        ("3.4", "warn  tmux: 3.4: not among the proved versions\n"),
        ("99.1", "warn  tmux: 99.1: newer than any proved version\n"),
        ("2.9a", "fail  tmux: tmux 2.9a is older than 3.2\n"),
    ],
)
def test_doctor_says_how_far_a_tmux_is_proved(tmp_path, monkeypatch, version, said):
    (tmp_path / "tmux").write_text(f"#!/bin/sh\necho tmux {version}\n")
    (tmp_path / "tmux").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert said in call("doctor")[1]


def backend_check(command, monkeypatch, *, enabled=True):
    agent = Member("a", "t-a", "persistent", "b", "/", "heal", enabled=enabled)
    fleet = Fleet("/c", "t-", "/l", "ao-t", "id", "/", backends=(Backend("b", command),), members=(agent,))
    return [check.level for check in doctor.binaries(fleet)]


def test_only_a_program_that_can_be_named_is_looked_for(monkeypatch):
    assert backend_check("sh -c x", monkeypatch) == ["ok"]
    assert backend_check("no-such-program --x", monkeypatch) == ["fail"]
    assert backend_check("no-such-program", monkeypatch, enabled=False) == ["warn"]
    assert backend_check("echo '[demo] {session} up'; exec sleep 9", monkeypatch) == []
    assert backend_check("$HOME/bin/x", monkeypatch) == []


APT = "apt-get update && apt-get install -y"
VENV_PACKAGE = f"python3.{sys.version_info[1]}-venv"
NIX = "nix --extra-experimental-features 'nix-command flakes' profile install"


@pytest.mark.parametrize(
    ("there", "uid", "needs", "line"),
    [
        ("apt-get", 0, "tmux git venv", f"{APT} tmux git {VENV_PACKAGE}"),
        ("apt-get", 1000, "tmux", f"{APT} tmux"),
        ("apt-get sudo", 1000, "tmux", "sudo apt-get update && sudo apt-get install -y tmux"),
        ("apt-get sudo", 0, "venv", f"{APT} {VENV_PACKAGE}"),
        ("dnf sudo", 1000, "tmux git venv", "sudo dnf install -y tmux git"),
        ("apk", 0, "tmux git venv", "apk add --update-cache tmux git"),
        ("pacman", 0, "tmux git", "pacman -Sy --noconfirm --needed tmux git"),
        ("brew sudo", 501, "tmux git", "brew install tmux git"),
        ("nix", 1000, "tmux git", f"{NIX} 'nixpkgs#tmux' 'nixpkgs#git'"),
        ("apt-get nix brew", 0, "git", f"{APT} git"),
        ("dnf", 0, "venv", ""),
        ("", 0, "tmux", ""),
    ],
)
def test_one_line_installs_all_that_is_missing(monkeypatch, there, uid, needs, line):
    monkeypatch.setattr(packages, "has", lambda name: name in there.split())
    monkeypatch.setattr(packages.os, "geteuid", lambda: uid)
    assert packages.install_line(needs.split()) == line


def bin_with(folder: Path, *tools: str) -> Path:
    """A PATH with these programs and nothing else."""
    import shutil

    folder.mkdir()
    for tool in tools:
        (folder / tool).symlink_to(shutil.which(tool) or "/bin/true")
    return folder


def test_a_user_without_sudo_is_told_one_line_and_whose_it_is(tmp_path):
    folder = bin_with(tmp_path / "bin", "id", "apt-get")
    program = (
        "import os, sys; os.geteuid = lambda: 1000; from fleet.host import packages; "
        "sys.exit(packages.main(['tmux']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={"PATH": str(folder)}, capture_output=True, text=True
    )
    assert done.returncode == 2
    words, line = done.stderr.splitlines()
    assert words.startswith("error: missing here: tmux 3.2 or newer")
    assert words.endswith("as root, then try again:")
    assert line.strip().startswith("apt-get update && apt-get install -y tmux git")


@pytest.mark.parametrize("verb", ["up", "demo", "attach builder", "doctor"])
def test_without_tmux_the_line_that_installs_it_is_printed(project, tmp_path, verb):
    folder = bin_with(tmp_path / "bin", "apt-get")
    environ = {"PATH": str(folder), "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "AO_WHEELS": "/nowhere"}
    argv = [sys.executable, str(ROOT / "agents.py"), *verb.split()]
    done = subprocess.run(argv, cwd=project, env=environ, capture_output=True, text=True)
    assert done.returncode == 1
    said = [line for line in (done.stdout + done.stderr).splitlines() if "apt-get install" in line]
    assert said
    assert all("apt-get update && " in line and " tmux git" in line for line in said)
    assert "cloning" not in done.stdout + done.stderr
    assert not list(tmp_path.glob("fleet-demo-*"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_for_their_shell(shell):
    code, out, _ = call("completions", shell)
    assert code == 0
    assert all(verb in out for verb in main.verbs())
    need(*{shell} - COMMON)
    done = subprocess.run([shell, "-n"], input=out, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["agents.py", "vali"], {"validate"}),
        (["agents.py", "logs", "--fol"], {"--follow"}),
        (["agents.py", "--config", "agents.toml", "logs", "bui"], {"builder"}),
        (["agents.py", "completions", "f"], {"fish"}),
    ],
)
def test_bash_completes_verbs_options_and_names(project, typed, offered):
    script = call("completions", "bash")[1] + (
        f"COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}\n"
        f'agents.py() {{ {sys.executable} {ROOT}/agents.py "$@"; }}\n'
        '_agents_py; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=project)
    assert set(done.stdout.split()) == offered, done.stderr


def test_a_verb_that_takes_names_completes_them():
    assert completions.words("logs").names
    assert not completions.words("version").names


def test_version_is_one_line_and_a_document():
    from fleet import __version__

    assert call("version")[1].startswith(f"agents.py {__version__}")
    assert call("--version")[1] == call("version")[1]
    assert json.loads(call("--json", "version")[1])["version"] == __version__


def test_validate_prints_every_error_and_json_holds_them(project):
    (project / "agents.toml").write_text(
        CONFIG.replace('backend = "demo"', 'backend = "dmeo"\nwrong_key = 1')
    )
    code, out, err = call("validate")
    assert (code, out) == (2, "")
    assert len([line for line in err.splitlines() if line.startswith("error: ")]) >= 2
    code, out, _ = call("validate", "--json")
    assert code == 2
    assert json.loads(out)["valid"] is False
    assert len(json.loads(out)["errors"]) >= 2


def test_validate_resolved_is_toml_that_validates_again(project):
    import tomllib

    pytest.importorskip("tomli_w")
    code, out, _ = call("validate", "--resolved")
    assert code == 0
    assert tomllib.loads(out)["defaults"]["session_prefix"] == "t-"


def test_validate_explains_a_key_and_refuses_an_unknown_one():
    code, out, _ = call("validate", "--explain", "agent.watch")
    assert code == 0
    assert "heal+stall" in out
    code, _, err = call("validate", "--explain", "agent.wach")
    assert code == 2
    assert err.startswith("error: ")
    code, out, _ = call("validate", "--json", "--explain", "[agent.wake]")
    assert code == 0
    assert [row["key"] for row in json.loads(out)] == [
        "agent.wake",
        "agent.wake.interval",
        "agent.wake.prompt_file",
    ]


def test_the_namespace_a_verb_gets_is_complete(project):
    _, args = main.parse(["--json", "logs", "builder"])
    assert isinstance(args, argparse.Namespace)
    assert (args.verb, args.json, args.config, args.name) == ("logs", True, None, "builder")


# -- facts for programs ----------------------------------------------------------------------------------

FACTS = [
    (["logs", "builder", "-n", "2"], lambda d: d["lines"] == ["line 248", "line 249"]),
    (["logs", "builder", "-n", "0"], lambda d: d["lines"] == []),
    (["attach", "builder", "--print"], lambda d: d["command"][-1] == "=t-builder:"),
    (["completions", "names"], lambda d: d == ["builder", "clean"]),
    (["completions", "fish"], lambda d: "complete -c agents.py" in d["script"]),
    (["tokens", "--plot"], lambda d: d["rows"] == []),
    (["ensure", "--install", "--print"], lambda d: len(d["files"]) == 2 and d["written"] is False),
]


@pytest.mark.parametrize(
    ("words", "right"), FACTS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_with_json_a_verb_prints_one_document(log, words, right):
    code, out, _ = call("--json", *words)
    assert code == 0
    assert right(json.loads(out))


def test_two_forms_of_the_same_facts_are_refused(project):
    code, out, err = call("status", "--prometheus", "--json")
    assert (code, out) == (2, "")
    assert "choose one" in err


def test_json_is_json_also_where_stdout_cannot_spell_it(project):
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    shown = agents("backend", "show", "claude", "--json", env=env)
    assert (
        json.loads(shown.stdout)["screen"]
        == json.loads(agents("backend", "show", "claude", "--json").stdout)["screen"]
    )


def test_a_digit_that_is_no_number_is_no_age(project):
    code, _, err = call("events", "--since", "²h")
    assert code == 2
    assert "expected a moment such as 90m" in err


class Left(Exception):
    """Another program took over."""


def test_libraries_are_fetched_for_a_caller_that_closed_its_streams_too(monkeypatch):
    def leave(*_):
        raise Left

    monkeypatch.delenv(bootstrap.ENTERED, raising=False)
    monkeypatch.setattr(bootstrap, "ensure", lambda *_, **__: "/a/python")
    monkeypatch.setattr(os, "execv", leave)
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    bootstrap.say("one moment")
    with pytest.raises(Left):
        bootstrap.enter(["no_such_library"])


@pytest.mark.parametrize("words", ["status", "validate", "init", "init sub", "--config agents.toml status"])
def test_a_current_directory_that_is_gone_is_said(tmp_path, words):
    (tmp_path / "gone").mkdir()
    command = f'cd "$3" && rmdir "$3" && "$1" "$2" {words}'
    shell = ["sh", "-c", command, "sh", sys.executable, str(ROOT / "agents.py"), str(tmp_path / "gone")]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    said = "error: the current directory: does not exist any more (cd to one that does)\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_an_absolute_config_needs_no_current_directory(project):
    (project / "gone").mkdir()
    command = 'cd "$3/gone" && rmdir "$3/gone" && "$1" "$2" --config "$3/agents.toml" status'
    shell = ["sh", "-c", command, "sh", sys.executable, str(ROOT / "agents.py"), str(project)]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("stdin", "says"),
    [("<&-", "the text is empty"), ("</dev/null", "the text is empty"), ("<bytes", "is not valid UTF-8")],
)
def test_a_text_that_cannot_be_sent_is_refused_before_anybody_is_asked(project, stdin, says):
    (project / "bytes").write_bytes(b"caf\xe9")
    shell = ["sh", "-c", f'"$1" "$2" send builder - {stdin}', "sh", sys.executable, str(ROOT / "agents.py")]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert not (project / "state").exists()
