"""Launch scripts, run for real by dash and bash: what arrives is what was declared, byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from fleet.backends import profiles
from fleet.backends.sources import notify
from fleet.core.model import Backend, Fleet, Member
from fleet.host.disk import RealDisk
from fleet.host.shell import fill
from fleet.supervisor import launch
from tests.deadlines import patience
from tests.records import replace

SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]

HOSTILE = [
    "plain", "with space", " lead", "trail ", "'", '"', "''", "it's", 'say "x"', "$(touch pwned)",
    "`touch pwned`", "${HOME}", "$HOME", "$$", "#(touch pwned)", "#{pid}", "a;touch pwned", "a&&touch pwned",
    "a|touch pwned", "a & touch pwned", ">pwned", "<pwned", "a\nb", "a\ntouch pwned\n", "trailing\n", "\n",
    "\t", "\r", "\x1b[201~x", "\x07", "\\", "\\n", "a\\", "*", "?[a-z]*", "~", "~root", "-n", "--help",
    "{model}", "{x}", "%s %d %%", "!history", "é漢\u202e\u200b",
    "=", "a=b", "${IFS}", "'; touch pwned; '", "x" * 5000,
]  # fmt: skip

RECORDER = """\
import json, os, sys
json.dump({"argv": [os.fsencode(a).hex() for a in sys.argv[1:]],
           "env": {k: os.fsencode(v).hex() for k, v in os.environ.items()},
           "cwd": os.getcwd(), "pid": os.getpid()}, open(os.environ["RECORD"], "w"))
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "log" / "state").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    recorder = tmp_path / "recorder"
    recorder.write_text(f"#!{sys.executable} -IS\n{RECORDER}", encoding="ascii")
    recorder.chmod(0o700)
    return tmp_path


class Scene:
    """One agent in one place; `run` starts its script under a shell and returns what the agent saw."""

    def __init__(self, place, **backend):
        self.place = place
        self.backend = Backend("b", backend.pop("bin", str(place / "recorder")), **backend)
        self.agent = Member("builder", "t-builder", "persistent", "b", str(place / "work"), "none")
        self.kickoff = ""
        self.kit = launch.Kit(kickoff_file=str(place / "kickoff.txt"))
        self.server_names = frozenset[str]()
        self.inherited: dict[str, str] = {}

    @property
    def fleet(self):
        return Fleet(
            str(self.place / "agents.toml"), "t-", str(self.place / "log"), "ao-t", "cafe", str(self.place),
            backends=(self.backend,), members=(self.agent,),
        )  # fmt: skip

    def script(self):
        said = self.kickoff.encode()
        (self.place / "kickoff.txt").write_bytes(said)
        return launch.compose(
            self.fleet,
            self.agent,
            replace(self.kit, kickoff_bytes=len(said)),
            run="run-1",
            held=launch.env_of(self.fleet, self.agent, self.inherited),
            server_names=self.server_names,
        )

    def run(self, shell="dash", script=None, *, becomes=True):
        path = self.place / "log" / "state" / "launch-t-builder.sh"
        path.write_text(script or self.script(), encoding="utf-8")
        record = self.place / "record.json"
        record.unlink(missing_ok=True)
        env = {"PATH": os.environ["PATH"], "RECORD": str(record), **self.inherited}
        started = subprocess.Popen(
            [shell, path], env=env, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output = started.communicate(timeout=patience(30))[0]
        if not record.exists():
            raise AssertionError(f"the agent never ran:\n{output.decode()}\n{path.read_text()}")
        seen = json.loads(record.read_text())
        seen["argv"] = [bytes.fromhex(a).decode() for a in seen["argv"]]
        seen["env"] = {k: bytes.fromhex(v).decode() for k, v in seen["env"].items()}
        assert (seen.pop("pid") == started.pid) == becomes, "the script of an agent becomes the agent"
        assert not [f for _, _, files in os.walk(self.place) for f in files if f == "pwned"]
        return {**seen, "output": output.decode(), "code": started.returncode}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("evil", HOSTILE)
def test_a_hostile_value_in_any_data_key_arrives_as_it_is(place, shell, evil):
    """R044 to R067, T08, I42: model, id, settings file, kickoff, env, directory, model_env: all at once."""
    directory = place / "work" / evil.replace("/", "_")[:200].replace("\0", "_")
    directory.mkdir(parents=True, exist_ok=True)
    scene = Scene(
        place,
        flags="--flag 'as written'",
        settings_flag='--settings "{file}"',
        resume_flag="--resume {id}",
        env=(("BACKEND_VALUE", evil),),
    )
    scene.agent = replace(scene.agent, dir=str(directory), env=(("AGENT_VALUE", evil),))
    scene.kit = replace(scene.kit, model=evil, resume_id=evil, settings_file=evil, signals_dir=evil)
    scene.kickoff = evil
    seen = scene.run(shell)
    assert seen["argv"] == [
        "--flag", "as written", "--model", evil, "--resume", evil, "--settings", evil, evil,
    ]  # fmt: skip
    assert seen["cwd"] == os.path.realpath(directory)
    assert seen["env"]["BACKEND_VALUE"] == seen["env"]["AGENT_VALUE"] == seen["env"]["AO_SIGNALS"] == evil


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("evil", HOSTILE)
def test_a_hostile_value_in_a_slot_of_the_users_shell_stays_one_word(place, shell, evil):
    nested = '"$(printf %s \'{model}\' && echo .)" \\\'"{model}"'
    slot = f"'{{model}}' \"{{model}}\" {{model}} pre{{model}}post {nested}"
    scene = Scene(place, prompt_delivery="exec", bin=f"exec {place}/recorder {slot}")
    scene.kit = replace(scene.kit, model=evil)
    seen = scene.run(shell)
    assert seen["argv"] == [evil, evil, evil, f"pre{evil}post", f"{evil}.", f"'{evil}"]


@pytest.mark.parametrize("shell", SHELLS)
def test_an_attach_template_gets_its_slots_and_flags(place, shell):
    """R058, R059, R063."""
    scene = Scene(
        place,
        prompt_delivery="ping",
        attach="{bin} attach {server} --dir {dir}",
        server="http://127.0.0.1:1/$(x)",
        flags="--more",
        model_env=True,
        model_variable="SETTINGS",
    )
    scene.kit = replace(scene.kit, model='m"odel')
    seen = scene.run(shell)
    assert seen["argv"] == ["attach", "http://127.0.0.1:1/$(x)", "--dir", str(place / "work"), "--more"]
    assert json.loads(seen["env"]["SETTINGS"]) == {"model": 'm"odel'}


def test_a_ping_backend_without_a_template_is_started_with_its_flags_and_no_prompt(place):
    """R047."""
    scene = Scene(place, prompt_delivery="ping", flags="--x")
    scene.kickoff = "typed later"
    assert scene.run()["argv"] == ["--x"]


def test_an_exec_backend_is_the_users_own_shell_with_the_three_slots(place):
    """R048, R049."""
    command = f"true && exec {place}/recorder {{kickoff}} {{session}} {{no}}"
    scene = Scene(place, prompt_delivery="exec", bin=command)
    assert scene.run()["argv"] == [str(place / "kickoff.txt"), "t-builder", "{no}"]


def test_remote_control_and_a_fresh_session_id_are_flags_of_their_own(place):
    """R050, T38."""
    scene = Scene(place, remote_control=True, session_id_flag="--session-id '{id}'")
    scene.kit = replace(scene.kit, session_id="u-u-i-d")
    assert scene.run()["argv"] == ["--session-id", "u-u-i-d", "--remote-control", "t-builder"]
    scene.kit = replace(scene.kit, resume_id="old")
    assert scene.run()["argv"] == ["--resume", "old", "--remote-control", "t-builder"]


def test_a_server_gets_its_port_by_flag_and_its_password_from_a_file(place):
    """SEC-14: the secret itself is not in the script."""
    (place / "key").write_text("sesame\n")
    scene = Scene(place, port_flag="--port {port}", server_key_env="SERVER_KEY")
    scene.kit = replace(scene.kit, port=4101, key_file=str(place / "key"))
    assert "sesame" not in scene.script()
    seen = scene.run()
    assert seen["argv"] == ["--port", "4101"]
    assert seen["env"]["SERVER_KEY"] == "sesame"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("evil", HOSTILE)
def test_a_program_to_be_notified_by_arrives_as_one_toml_array(place, shell, evil):
    """I42."""
    scene = Scene(place, notify_flag="-c notify={notify}")
    scene.kit = replace(scene.kit, notify=notify(profiles.load("codex"), evil))
    (_, argument) = scene.run(shell)["argv"]
    assert tomllib.loads(argument)["notify"][-1] == evil


@pytest.mark.parametrize("size", [1, 2, 4095, 119_999, 120_000])
def test_a_kickoff_that_fits_is_an_argument(place, size):
    """R046."""
    scene = Scene(place)
    scene.kickoff = ("é'\n" * size)[: size // 2 or 1]
    assert scene.run()["argv"] == [scene.kickoff]


def test_a_kickoff_too_long_for_an_argument_is_pointed_at(place):
    """T26."""
    scene = Scene(place)
    scene.kickoff = "x" * 1_000_000
    assert scene.run()["argv"] == [f"Read {place}/kickoff.txt and follow it."]


def test_no_kickoff_is_no_argument(place):
    assert Scene(place).run()["argv"] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_an_agent_sees_what_it_may_and_nothing_else(place, shell):
    """T12, T11, R133: the server's union, less what is not this agent's."""
    own = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
    scene = Scene(place, env_pass=("MY_KEY", "MY_PROXY_*", "CLAUDE_CODE_*"), nested_env=own)
    scene.inherited = {
        "MY_KEY": "1", "MY_PROXY_URL": "2", "OTHER_KEY": "3", "CLAUDECODE": "1", "TMUX": "t",
        "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_USE_BEDROCK": "1",
        "TMUX_PANE": "%1", "AGENT_MODEL_builder": "m", "AO_RUN_ID": "stale", "HOME": "/h",
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    scene.server_names = frozenset({*scene.inherited, "not a name; touch pwned"})
    env = scene.run(shell)["env"]
    assert {k: env.get(k) for k in ("MY_KEY", "MY_PROXY_URL", "HOME", "LC_ALL")} == {
        "MY_KEY": "1", "MY_PROXY_URL": "2", "HOME": "/h", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    hidden = {"OTHER_KEY", "CLAUDECODE", "TMUX", "TMUX_PANE", "AGENT_MODEL_builder"}
    assert not {*hidden, "CLAUDE_CODE_ENTRYPOINT"} & env.keys()
    assert env["CLAUDE_CODE_USE_BEDROCK"] == "1"
    places = {"AO_PROJECT_DIR", "AO_LOG_DIR", "AO_ENGINE", "AO_PYTHON"}
    ours = {k: v for k, v in env.items() if k.startswith("AO_") and k not in places}
    assert ours == {
        "AO_RUN_ID": "run-1", "AO_AGENT": "builder", "AO_PROJECT": "cafe", "AO_SESSION": "t-builder",
        "AO_SIGNALS": "",
    }  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_an_env_file_is_data_and_is_never_executed(place, shell):
    file = place / "secrets.env"
    file.write_bytes(
        b"# comment\n\nA=1\nexport B='two words'\nC=\"$(touch pwned)\"\nD=`touch pwned`; touch pwned\r\n"
        b"E=a=b\n1BAD=x\nBAD NAME=x\ntouch pwned\nF=\nG='half\nH=%s\\n  \nOVERRIDDEN=file\nLAST=no newline"
    )
    scene = Scene(place)
    scene.agent = replace(scene.agent, env_file=str(file), env=(("OVERRIDDEN", "agent"),))
    env = scene.run(shell)["env"]
    assert {k: env.get(k) for k in "ABCDEFGH"} == {
        "A": "1", "B": "two words", "C": "$(touch pwned)", "D": "`touch pwned`; touch pwned", "E": "a=b",
        "F": "", "G": "'half", "H": "%s\\n  ",
    }  # fmt: skip
    assert (env["OVERRIDDEN"], env["LAST"]) == ("agent", "no newline")
    assert "1BAD" not in env
    assert "no newline" not in scene.script()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("preamble", "fails"),
    [
        ("export FROM_PREAMBLE=yes", False),
        ("FROM_PREAMBLE=yes; export FROM_PREAMBLE; false", True),
        ("export FROM_PREAMBLE=yes; . ./missing.env", True),
        ("export FROM_PREAMBLE=yes; exit 7", True),
        ("export FROM_PREAMBLE=yes\nset -eu\nfalse", True),
        ("export FROM_PREAMBLE=yes\nset -u; echo $NOT_SET", True),
        ("export FROM_PREAMBLE=yes\nif; then (", True),
    ],
)
def test_a_preamble_may_fail_in_any_way_and_the_agent_still_starts(place, shell, preamble, fails):
    """T42, R064: it runs in the agent's directory; the failure is shown and recorded."""
    scene = Scene(place, preamble=preamble)
    scene.kickoff = "go"
    seen = scene.run(shell)
    assert seen["argv"] == ["go"]
    assert ("the preamble failed with code" in seen["output"]) == fails
    run, code = (place / "log" / "state" / "preamble-t-builder").read_text().split()
    assert (run, code != "0") == ("run-1", fails)
    if "if; then" not in preamble:  # what does not parse does not run at all
        assert seen["env"]["FROM_PREAMBLE"] == "yes"


def test_the_seeds_preamble_loads_the_file_of_the_agents_own_directory(place):
    (place / "work" / ".env").write_text("TOKEN=abc\n", encoding="ascii")
    scene = Scene(place, preamble="set -a; . ./.env; set +a")
    assert scene.run()["env"]["TOKEN"] == "abc"


def test_a_directory_that_is_gone_stops_the_start_with_a_code_of_its_own(place):
    scene = Scene(place)
    scene.agent = replace(scene.agent, dir=str(place / "nowhere"))
    path = place / "launch.sh"
    path.write_text(scene.script(), encoding="ascii")
    done = subprocess.run(["sh", path], capture_output=True, text=True, check=False)
    assert done.returncode == 72
    assert "nowhere" in done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_service_runs_the_users_command_in_its_directory(place, shell):
    """R097."""
    scene = Scene(place)
    command = f"X=1; exec {place}/recorder $X 'a b'"
    work, env = str(place / "work"), (("K", "v'$x"),)
    service = Member("logs", "t-logs", "service", "", work, "heal", env=env, command=command)
    script = launch.compose(
        scene.fleet, service, launch.Kit(), run="run-9", held=(), server_names=frozenset({"SECRET"})
    )
    scene.inherited = {"SECRET": "s"}
    seen = scene.run(shell, script)
    assert (seen["argv"], seen["cwd"], seen["env"]["K"]) == (["1", "a b"], str(place / "work"), "v'$x")
    assert (seen["env"]["AO_RUN_ID"], seen["env"]["AO_AGENT"]) == ("run-9", "logs")
    assert "SECRET" not in seen["env"]


def test_the_watchdog_keeps_what_it_must_hand_out_and_drops_one_off_overrides(place):
    """R135."""
    scene = Scene(place)
    scene.inherited = {"SOME_KEY": "k", "AGENT_BACKEND_builder": "x", "CLAUDECODE": "1"}
    scene.inherited |= {"OF_THE_SERVERS_FOUNDER": "s", "TERM": "tmux"}
    script = launch.compose_watchdog(
        scene.fleet,
        run="run-0",
        argv=[str(place / "recorder"), "--config", "it's.toml", "watchdog"],
        held=["SOME_KEY", "RECORD"],
        server_names=frozenset(scene.inherited),
    )
    seen = scene.run("dash", script, becomes=False)  # a shell stays, to start it again
    assert seen["argv"] == ["--config", "it's.toml", "watchdog"]
    assert seen["code"] == 0
    assert seen["env"]["SOME_KEY"] == "k"
    assert seen["env"]["TERM"] == "tmux"
    assert not {"AGENT_BACKEND_builder", "CLAUDECODE", "OF_THE_SERVERS_FOUNDER"} & seen["env"].keys()


def test_the_union_holds_what_any_member_may_see_and_no_more(place):
    scene = Scene(place, env_pass=("KEY_A",))
    scene.agent = replace(scene.agent, env_pass=("KEY_B*", "TMUX", "AGENT_MODEL_x"))
    hidden = {"KEY_C": "3", "TMUX": "t", "AGENT_MODEL_x": "m", "1": "x"}
    environ = {"PATH": "/bin", "KEY_A": "1", "KEY_B2": "2", **hidden}
    assert launch.server_env(scene.fleet, environ) == {"PATH": "/bin", "KEY_A": "1", "KEY_B2": "2"}
    assert launch.env_of(scene.fleet, scene.agent, environ).keys() == {"PATH", "KEY_A", "KEY_B2"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, ""),
        ({"dir": "/nowhere/at/all"}, "dir /nowhere/at/all is not a directory"),
        ({"env_file": "/nowhere.env"}, "env_file /nowhere.env cannot be read"),
    ],
)
def test_preflight_names_what_is_missing_and_what_to_do(place, change, complaint):
    scene = Scene(place)
    scene.agent = replace(scene.agent, **change)
    said = launch.preflight(RealDisk(), scene.fleet, scene.agent, {"PATH": "/bin"})
    assert said.startswith(complaint)  # the row that shows it has the name
    assert bool(said) == bool(complaint)


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        ({"bin": "sh"}, True),
        ({"bin": "no-such-cli"}, False),
        ({"bin": "./here"}, True),
        ({"bin": "./not-here"}, False),
        ({"bin": "no-such-cli", "preamble": "PATH=$PATH:/x"}, True),
        ({"bin": "no-such-cli; true", "prompt_delivery": "exec"}, True),
        ({"bin": "no-such-cli", "prompt_delivery": "exec"}, False),
        ({"bin": "no-such-cli", "prompt_delivery": "ping", "attach": "other {server}"}, True),
        ({"bin": "own-tool", "env": (("PATH", "PLACE/work"),)}, True),
        ({"bin": "-rf"}, False),
        ({"bin": ""}, False),
    ],
)
def test_preflight_finds_a_binary_only_where_it_can_be_known(place, backend, found):
    for name in ("here", "own-tool"):
        (place / "work" / name).write_text("#!/bin/sh\n", encoding="ascii")
        (place / "work" / name).chmod(0o700)
    if "env" in backend:
        backend = {**backend, "env": (("PATH", str(place / "work")),)}
    scene = Scene(place, **backend)
    said = launch.preflight(RealDisk(), scene.fleet, scene.agent, {"PATH": "/usr/bin:/bin"})
    assert (said == "") == found, said


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("--model '{model}'", "--model ''m''"),
        ('--model "{model}"', '--model ""m""'),
        ("{model}{model}", "mm"),
        ("\\'{model}", "\\'m"),
        ("{unknown} {model} {}", "{unknown} m {}"),
        ("( echo '{model}' ) # {model}", "( echo ''m'' ) # m"),
        ("\"`echo '{model}'`\"", "\"`echo ''m''`\""),
    ],
)
def test_only_known_slots_are_filled_and_each_inside_quotes_of_its_own(template, filled):
    assert fill(template, {"model": "m"}) == filled
