"""agents.toml in, a Fleet out: every key, its default, inheritance and paths."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tomllib

import pytest
import tomli_w

from fleet import config
from fleet.backends.profiles import names
from fleet.config import backend_tables
from fleet.config.explain import resolved
from fleet.config.keys import BY_SECTION, KEYS
from fleet.config.schema import REQUIRED, Type, convert
from fleet.core import model
from fleet.core.model import (
    Backend,
    Dialog,
    Fleet,
    Gate,
    Handoff,
    Loop,
    Member,
    Notify,
    OnComplete,
    Pattern,
    Phase,
    Price,
    TextRule,
    Wake,
    WatchdogSpec,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "tests", "fixtures", "config")
DEMO = {"bin": "demo", "prompt_delivery": "exec"}
PROFILES = {"demo": DEMO, "base": {"bin": "base", "env": {"BASE": "1"}, "supports_resume": True}}

HEAD = """\
[defaults]
session_prefix = "my-"
log_dir = ".log"
backend = "demo"
"""

SPECS = {
    "watchdog": WatchdogSpec,
    "agent": Member,
    "agent.wake": Wake,
    "service": Member,
    "loop": Loop,
    "loop.phases": Phase,
    "loop.phases.gates": Gate,
    "loop.handoff": Handoff,
    "loop.on_complete": OnComplete,
    "backend": Backend,
    "backend.patterns": Pattern,
    "backend.dialogs": Dialog,
    "backend.texts": TextRule,
    "notify": Notify,
    "price": Price,
}
NOT_KEYS = {  # fields that are not written in the table itself
    "agent": {"command", "model_pinned"},
    "service": {
        "kind", "backend", "model", "role", "resume", "wake", "prompt", "prompt_file", "log_signature",
        "account", "resume_on_reset", "clone", "model_pinned",
    },
    "backend": {"name"},
    "price": {"model"},
}
OF_ITS_SECTION = {("service", "command")}  # an agent has none, so the model cannot say that it is required


def parse(text: str, **options) -> Fleet:
    options = {"is_file": lambda _: True, "profiles": PROFILES} | options
    return config.parse(text, "/proj/agents.toml", **options)


def fixture(name: str) -> str:
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("section", SPECS)
def test_the_key_table_and_the_model_hold_the_same_fields(section):
    fields = {field.name for field in dataclasses.fields(SPECS[section])} - NOT_KEYS.get(section, set())
    assert set(BY_SECTION[section]) - {"log_tokens" if section == "loop" else ""} == fields


@pytest.mark.parametrize("section", SPECS)
def test_a_default_is_the_same_in_the_key_table_and_in_the_model(section):
    for field in dataclasses.fields(SPECS[section]):
        key = BY_SECTION[section].get(field.name)
        stated = key is None or key.derived or (section, key.name) in OF_ITS_SECTION
        if not stated and field.default is not dataclasses.MISSING:
            assert key.default == field.default, f"{section}.{field.name}"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.section}.{key.name}")
def test_every_key_has_a_meaning_and_an_example_that_is_accepted(key):
    value = tomllib.loads(f"x = {key.example}")["x"]
    normal = convert(key.type, value)
    assert key.text
    assert key.text.endswith(".")
    assert not key.check or not key.check(normal)
    words = normal if key.type is Type.STRINGS else dict(normal) if key.type is Type.WORDS else [normal]
    assert not key.words or set(words) <= set(key.words)
    assert (
        key.default is REQUIRED
        or key.type in {Type.TABLE, Type.TABLES}
        or isinstance(key.default, type(normal))
    )


def test_every_key_of_the_contract_and_beyond_lands_where_it_belongs():
    fleet = parse(fixture("full.toml"), strict=True)
    base = backend_tables.profile_values("base", PROFILES["base"])
    del base["bin"]
    assert fleet == Fleet(
        config_path="/proj/agents.toml",
        project_dir="/proj/sub",
        session_prefix="full-",
        log_dir="/proj/sub/var/log",
        tmux_socket="sock.1",
        project_id=hashlib.sha256(b"/proj/agents.toml\0full-").hexdigest()[:16],
        watchdog=WatchdogSpec(0.5, 7.0, 8.0, 9.0, 10.0, log_tokens=True, notify_after=11.0),
        backends=(
            Backend(
                name="mine",
                inherits="base",
                bin="mine-cli",
                flags="-q",
                prompt_delivery="ping",
                prompt_mark="--",
                model_flag="-m {model}",
                model_env=True,
                model_variable="MINE_SETTINGS",
                nested_env=("MINE_INSIDE",),
                supports_resume=True,
                resume_flag="-r {id}",
                resume_refused_re="no such conversation",
                session_id_flag="-i {id}",
                settings_flag="-s {file}",
                notify_flag="-n {notify}",
                port_flag="-p {port}",
                server_key_env="SERVER_KEY",
                message_delivery="server",
                remote_control=True,
                remote_control_flag="-c {session}",
                attach="{bin} attach {server} --dir {dir}",
                server="http://127.0.0.1:1",
                preamble="true",
                env=(("BASE", "1"), ("K", "v")),
                env_pass=("P_BACKEND",),
                process_name="mine",
                submit_key="C-m",
                clear_keys=("C-u",),
                queues_input=True,
                connect_delay=1.0,
                start_grace=2.0,
                stall_idle=3.0,
                log_grace=4.0,
                footer_ui=True,
                active_re=r"busy \d+",
                limit_re="limit",
                fatal_re="fatal",
                signals=("hooks",),
                transcript="claude",
                version="9",
                screen=(("composer", "^> (?P<draft>.*)"),),
                patterns=(Pattern("busy", "working", "busy", "footer", "not", "mend it", "f", "1"),),
                dialogs=(Dialog("trust", "trust", "Enter", "do it", "g", "2"),),
                texts=(TextRule("shell", r"\A!", "refuse", "both", "it would be run", "3"),),
            ),
        ),
        members=(
            Member(
                name="a",
                session="other",
                kind="persistent",
                backend="mine",
                dir="/abs",
                watch="none",
                model="m-own",
                role="r",
                resume=False,
                enabled=False,
                wake=Wake(1.5, "/proj/sub/wake.md"),
                prompt="hello",
                log_signature="sig",
                account="acc",
                resume_on_reset=True,
                env=(("A", "1"), ("B", "3"), ("C", "4")),
                env_pass=("P_AGENT", "LC_*"),
                env_file="/proj/sub/own.env",
                clone="/proj/sub",
            ),
            _inheriting("worker", kind="loop", watch="heal+stall", role="r2"),
            _inheriting("job", kind="task", watch="none", prompt_file="/proj/sub/job.md"),
            Member(
                "svc",
                "svc-session",
                "service",
                "",
                "/proj/sub/d",
                "none",
                command="sleep 1",
                enabled=False,
                env=(("X", "y"),),
                env_pass=("P_SERVICE",),
                env_file="/proj/sub/svc.env",
            ),
        ),
        loop=Loop(
            kickoff_template="/proj/sub/k.md",
            roles_dir="/proj/sub/roles",
            phases=(
                Phase(
                    "one",
                    "p.md",
                    "s.md",
                    (("r2", "m-phase"),),
                    (Gate(run="make", timeout=5.0), Gate(clean=True), Gate(review="PASS"),
                     Gate(ratchet="count", metric="n")),
                ),
            ),
            handoff=Handoff(
                "/proj/sub/repo", ("worker", "a"), ("worker",), ("I1", "I2"), "^c", "^r", "docs", "main"
            ),
            state_file="idx",
            resume_phase=False,
            auto_advance=False,
            done_marker="FIN",
            done_nudge=False,
            on_complete=OnComplete("/proj/sub/var/log/go", "job"),
        ),
        notify=(Notify("command", ("fatal",), "cat", "HOOK", "22:00-07:00", 1.0, 5),),
        prices=(Price("m.1", 1.0, 2.0, 3.0, 4.0),),
    )  # fmt: skip


def _inheriting(name: str, **own) -> Member:
    inherited = {
        "session": f"full-{name}",
        "backend": "mine",
        "dir": "/proj/sub/work",
        "model": "m-default",
        "resume": True,
        "resume_on_reset": False,
        "account": "acc-default",
        "env": (("A", "1"), ("B", "2")),
        "env_pass": ("P_DEFAULT",),
        "env_file": "/proj/sub/default.env",
    }
    return Member(name=name, **(inherited | own))


def test_the_full_sample_uses_every_key():
    document = tomllib.loads(fixture("full.toml"))
    used = {
        "watchdog": document["watchdog"],
        "defaults": document["defaults"],
        "backend": document["backend"]["mine"],
        "backend.patterns": document["backend"]["mine"]["patterns"][0],
        "backend.dialogs": document["backend"]["mine"]["dialogs"][0],
        "backend.texts": document["backend"]["mine"]["texts"][0],
        "agent": document["agent"][0] | document["agent"][2],
        "agent.wake": document["agent"][0]["wake"],
        "service": document["service"][0],
        "loop": document["loop"],
        "loop.phases": document["loop"]["phases"][0],
        "loop.phases.gates": {k for gate in document["loop"]["phases"][0]["gates"] for k in gate},
        "loop.handoff": document["loop"]["handoff"],
        "loop.on_complete": document["loop"]["on_complete"],
        "notify": document["notify"][0],
        "price": document["price"]["m.1"],
    }
    assert {section: set(keys) for section, keys in used.items()} == {
        section: set(keys) for section, keys in BY_SECTION.items()
    }


def test_multi_line_inline_tables_load_as_written_in_the_contract():  # T02
    fleet = parse(fixture("contract.toml"), strict=True)
    assert fleet.loop.handoff == Handoff(
        repo="/proj",
        claim_pings=("adversary",),
        review_pings=("builder",),
        inboxes=("ADVERSARY-INBOX.md", "BUILDER-INBOX.md"),
        state_subdir="machine-docs",
    )
    assert [phase.id for phase in fleet.loop.phases] == ["p1", "p2"]
    assert fleet.backend_of(fleet.agent("builder")).active_re == "esc to interrupt|Running tool|· \\d+"


def test_the_contract_sample_also_loads_over_the_shipped_profiles():  # T02
    fleet = parse(fixture("contract.toml"), strict=True, profiles=None)
    assert fleet.agent("builder").backend == "claude"


def test_the_watchdog_has_the_defaults_of_the_contract():  # R030-R035
    spec = parse(HEAD).watchdog
    assert spec == WatchdogSpec(30.0, 300.0, 300.0, 45.0, 180.0, log_tokens=False)


@pytest.mark.parametrize("place", ["[watchdog]", "[loop]"])
def test_log_tokens_counts_in_either_place(place):  # R035, T85
    phases = 'phases = [{ id = "p", plan = "p", status = "s" }]' if place == "[loop]" else ""
    assert parse(f"{HEAD}{place}\nlog_tokens = true\n{phases}").watchdog.log_tokens


@pytest.mark.parametrize(
    ("kind", "defaults", "own", "expected"),
    [
        ("loop", "", "", "heal+stall"),
        ("persistent", "", "", "heal"),
        ("task", "", "", "none"),
        ("loop", "heal", "", "heal"),
        ("persistent", "heal+stall", "", "heal+stall"),
        ("persistent", "none", "", "none"),
        ("task", "heal", "", "none"),
        ("task", "heal+stall", "", "none"),
        ("task", "none", "heal", "heal"),
        ("loop", "heal", "none", "none"),
    ],
)
def test_watch_comes_from_the_agent_then_defaults_then_kind_and_a_task_never_inherits(
    kind, defaults, own, expected
):  # T09, R024, R078
    text = HEAD + (f'watch = "{defaults}"\n' if defaults else "")
    text += f'[[agent]]\nname = "a"\nkind = "{kind}"\nrole = "r"\n' + (f'watch = "{own}"\n' if own else "")
    text += '[loop]\nphases = [{ id = "p", plan = "p", status = "s" }]'
    assert parse(text).agent("a").watch == expected


@pytest.mark.parametrize(
    ("project_dir", "dir_", "expected"),
    [
        (None, None, "/proj"),
        (None, "w", "/proj/w"),
        (None, "/abs/w", "/abs/w"),
        ("..", "w", "/w"),
        ("sub", "../w", "/proj/w"),
        ("/else", ".", "/else"),
        ("/else", "~/w", "/home/me/w"),
        ("~", "w", "/home/me/w"),
        (None, "a b's $(x) #{y}", "/proj/a b's $(x) #{y}"),
    ],
)
def test_paths_start_at_the_project_never_at_the_current_directory(
    monkeypatch, tmp_path, project_dir, dir_, expected
):  # R023, R025-R027, T07
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    text = HEAD + (f'project_dir = "{project_dir}"\n' if project_dir else "")
    text += '[[agent]]\nname = "a"\n' + (f'dir = "{dir_}"\n' if dir_ else "")
    assert parse(text).agent("a").dir == expected


def test_a_missing_working_directory_is_no_config_error():  # T07
    assert config.parse(HEAD + '[[agent]]\nname = "a"\ndir = "nowhere"', "/proj/agents.toml", strict=True)


@pytest.mark.parametrize(
    ("clone", "expected"),
    [
        (".", "/proj"),
        ("../up", "/up"),
        ("https://host/x.git", "https://host/x.git"),
        ("git@host:x/y.git", "git@host:x/y.git"),
        ("file:///srv/x", "file:///srv/x"),
        ("-u/x", "/proj/-u/x"),
    ],
)
def test_a_clone_source_is_a_path_of_the_project_or_an_address(clone, expected):
    assert parse(f'{HEAD}[[agent]]\nname = "a"\nclone = "{clone}"').agent("a").clone == expected


@pytest.mark.parametrize(
    ("prefix", "socket"), [("my-", "ao-my"), ("my", "ao-my"), ("a_b--", "ao-a_b"), ("x-_-", "ao-x")]
)
def test_the_socket_is_private_and_named_after_the_prefix(prefix, socket):
    assert parse(HEAD.replace("my-", prefix)).tmux_socket == socket


def test_the_project_id_follows_the_real_file_and_the_prefix(tmp_path):  # T23
    real = tmp_path / "agents.toml"
    real.write_text(HEAD)
    link = tmp_path / "link.toml"
    link.symlink_to(real)
    ids = {config.load(str(real)).project_id, config.load(str(link)).project_id}
    assert len(ids) == 1
    assert config.parse(HEAD.replace("my-", "your-"), str(real)).project_id not in ids
    assert len(ids.pop()) == 16


def test_pings_may_name_an_agent_a_role_or_a_list_and_become_agents():  # T63
    roles = {"b": "builder", "a1": "adversary", "a2": "adversary", "adversary2": "b"}
    agents = "".join(f'[[agent]]\nname = "{n}"\nkind = "loop"\nrole = "{r}"\n' for n, r in roles.items())
    loop = '[loop]\nphases = [{ id = "p", plan = "p", status = "s" }]\n[loop.handoff]\n'
    fleet = parse(HEAD + agents + loop + 'claim_pings = "adversary"\nreview_pings = ["b", "adversary2", "b"]')
    assert fleet.loop.handoff.claim_pings == ("a1", "a2")
    assert fleet.loop.handoff.review_pings == ("b", "adversary2")


def test_a_loop_without_a_handoff_looks_for_status_files_in_the_project():  # R110
    fleet = parse(HEAD + '[loop]\nphases = [{ id = "p", plan = "p", status = "s" }]')
    assert fleet.loop.handoff == Handoff(repo="/proj")


def test_no_loop_is_fine_without_loop_agents():  # T57
    assert parse(HEAD + '[[agent]]\nname = "a"', strict=True).loop is None


def test_a_byte_order_mark_and_windows_line_ends_are_harmless():
    assert parse("\ufeff" + fixture("contract.toml").replace("\n", "\r\n")) == parse(fixture("contract.toml"))


def test_an_odd_but_usable_file_loads_with_warnings_that_name_their_line():  # T06
    fleet = parse(HEAD + '[[agent]]\nname = "a"\nprmpt = "x"')
    assert fleet.warnings == (
        '/proj/agents.toml:7: agent[0].prmpt: there is no such key (did you mean "prompt"?)',
    )


@pytest.mark.parametrize("name", ["small.toml", "contract.toml", "full.toml"])
def test_the_resolved_document_reads_back_as_the_same_fleet(name):
    fleet = parse(fixture(name))
    text = tomli_w.dumps(resolved(fleet))
    again = parse(text, strict=True)
    assert len(again.warnings) == len(fleet.warnings)  # on other lines
    assert dataclasses.replace(again, warnings=()) == dataclasses.replace(fleet, warnings=())


@pytest.mark.parametrize("profile", names())
def test_every_shipped_profile_resolves_and_reads_back(profile):
    fleet = parse(HEAD.replace("demo", profile) + '[[agent]]\nname = "a"', profiles=None)
    text = tomli_w.dumps(resolved(fleet))
    assert config.parse(text, "/proj/agents.toml", strict=True) == fleet


@pytest.mark.parametrize("name", ["agents.example.toml"])
def test_the_example_is_strictly_valid(name):  # R004
    fleet = config.load(os.path.join(ROOT, name), strict=True)
    assert not fleet.warnings
    assert len(fleet.agents) == 2
    assert len(fleet.loop.phases) == 2


def test_the_model_words_are_the_schema_words():
    assert (*BY_SECTION["agent"]["kind"].choices, "service") == model.Kind.__args__
    assert BY_SECTION["agent"]["watch"].choices == model.Watch.__args__
    assert BY_SECTION["backend"]["prompt_delivery"].choices == model.Delivery.__args__
