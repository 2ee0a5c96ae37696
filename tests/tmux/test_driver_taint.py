"""Whatever a key holds that is data stays data: in every key and in the project's own path, for a whole life.

The keys come from the schema, so a new one is tried without a word here. Each is given every hostile string
with a mark of its own: were a shell, git or tmux to obey one, a file would appear that names both the string
and the key. What the config refuses never gets anywhere; what it takes must arrive exactly.
"""

from __future__ import annotations

import os
import signal
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from json import JSONDecoder
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fleet import config
from fleet.config.build import Build
from fleet.config.keys import BY_SECTION
from fleet.config.problems import Findings, KeyPath
from fleet.config.schema import Key, Type
from fleet.core.model import Fleet, Member
from fleet.host.children import Jobs
from fleet.host.tmux.control import ControlTmux
from fleet.host.tmux.server import server_of
from fleet.supervisor.loop import LoopKeeper
from fleet.supervisor.phase import model_in
from fleet.supervisor.reload import Reloader
from fleet.supervisor.tick import Supervisor
from fleet.supervisor.world import real_helpers, real_world
from tests.tmux.inside import verb
from tests.tmux.project import ENGINE, Project, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

Table = dict[str, Any]

# Words of shell, tmux, git and terminals; % is the file that must not appear.
HOSTILE = (
    "$(touch %)", "`touch %`", "#(touch %)", "#{E:#(touch %)}", "##(touch %)", ";touch %", "x; touch %; ",
    "&& touch %", "| touch %", "|| touch %", "& touch %", "\ntouch %\n", "\r\ntouch %\r\n", "'; touch %; '",
    '"; touch %; "', "'\"; touch %; \"'", "'$(touch %)'", '"$(touch %)"', "\\'; touch %; \\'", "\\$(touch %)",
    "${x:-$(touch %)}", "$((`touch %`))", ">%", "<(touch %)", "touch %", "a %\\", "a\\\n$(touch %)",
    "{kickoff}$(touch %)", "'{model}'$(touch %)", "%%s%%n$(touch %)", "-n $(touch %)", "--help; touch %",
    "-exec touch %", "-- %", "!touch %", "~nobody-here/$(touch %)", "* ?[a-z];touch %",
    "\x1b]0;$(touch %)\x07", "\x1b[201~touch %\r", "\ttouch %", "} ; run-shell 'touch %' ; {",
    "' ; run-shell \"touch %\" ; '",
    "\u202e$(touch %)é漢\u200b", "X\nEOF\ntouch %\nEOF\n", "$'\\x24(touch %)'", "#[fg=red]#(touch %);",
    "ext::sh -c touch% %", "--upload-pack=touch %", "=x:;touch %", "\x7f\x01$(touch %)",
    "x" * 100 + ";touch %",
)  # fmt: skip

# The user's own shell. What is put into the slots of a template is data all the same.
SHELL = {
    "backend.bin": "a whole command for exec; as the name of a file it is tried below",
    "backend.flags": "words of a command line",
    "backend.preamble": "shell that runs before the agent",
    "backend.attach": "a command with slots",
    "service.command": "a command",
    "notify.command": "a command",
    "loop.phases.gates.run": "a command",
    "loop.phases.gates.ratchet": "a command",
}
TEMPLATE = "_flag"  # so end the names of templates of a command line, with slots
WORDY = {Type.STRING, Type.PATH, Type.REGEX, Type.STRINGS, Type.NAMES, Type.WORDS}
ONE_A_FLEET = {"defaults", "loop", "loop.handoff", "loop.on_complete"}

# Notes down what it was given, and stays. Its own name may be anything.
RECORDER = """\
#!/bin/sh
env -0 >"$RECORD.env"
printf '%s\\0' "$@" >"$RECORD.arg"
pwd -P >"$RECORD.cwd"
mv "$RECORD.cwd" "$RECORD.done"
exec sleep 100000
"""


def is_data(key: Key) -> bool:
    return key.type in WORDY and f"{key.section}.{key.name}" not in SHELL and not key.name.endswith(TEMPLATE)


def mark(number: int, key: str) -> str:
    text = HOSTILE[number].replace("%%", "\0").replace("%", f"pwned-{number}-{key}")
    return text.replace("\0", "%")


def skeleton(records: Path) -> Table:
    """One of everything that a file may declare. Numbers are put behind the names later."""

    def member(name: str, kind: str, backend: str, **more: Any) -> Table:
        return {
            "name": name,
            "kind": kind,
            "backend": backend,
            "env": {"RECORD": f"{records}/{name}"},
            **more,
        }

    return {
        "backend": {
            "t": {
                "bin": "./rec",
                "flags": "-f",
                "patterns": [{"name": "a", "state": "idle", "re": "x"}],
                "dialogs": [{"name": "a", "re": "x"}],
                "texts": [{"name": "a", "re": "x", "treat": "refuse"}],
            },
            "l": {"bin": "./rec", "prompt_delivery": "ping", "attach": "{bin} '{server}' {dir} \"{dir}\""},
            "x": {"bin": "exec ./rec {model} '{kickoff}' \"{session}\"", "prompt_delivery": "exec"},
        },
        "agent": [
            member("t", "persistent", "t", wake={"interval": 3600, "prompt_file": "w"}),
            member("p", "persistent", "x"),
            member("l", "loop", "l", role="r"),
            member("z", "task", "x", enabled=False),
        ],
        "service": [{"name": "s", "command": "exec ./rec", "env": {"RECORD": f"{records}/s"}}],
        "loop": {
            "kickoff_template": "kickoff.md",
            "handoff": {"repo": "."},
            "on_complete": {"trigger_file": "go", "run": "z"},
            "phases": [
                {"id": "p", "plan": "p", "status": "S", "gates": [{"review": "x"}, {"ratchet": "echo 1"}]}
            ],
        },
        "notify": [{"to": "command", "command": "cat >/dev/null"}],
        "price": {"m": {"input": 1.0, "output": 1.0}},
    }


def tables(document: Table) -> Iterator[tuple[str, Table]]:
    """Every table of a document, with the section of the schema that it is."""
    yield "defaults", document["defaults"]
    for agent in document["agent"]:
        yield "agent", agent
        if "wake" in agent:
            yield "agent.wake", agent["wake"]
    for section in ("service", "notify"):
        yield from ((section, row) for row in document[section])
    yield from (("price", row) for row in document["price"].values())
    loop = document["loop"]
    yield from (("loop", loop), ("loop.handoff", loop["handoff"]), ("loop.on_complete", loop["on_complete"]))
    for phase in loop["phases"]:
        yield "loop.phases", phase
        yield from (("loop.phases.gates", gate) for gate in phase["gates"])
    for backend in document["backend"].values():
        yield "backend", backend
        for part in ("patterns", "dialogs", "texts"):
            yield from ((f"backend.{part}", row) for row in backend.get(part, ()))


def excluded(table: Table, name: str) -> bool:
    """One of two that may not stand together; the other table of the skeleton has it."""
    pairs = {"t": {"prompt_file", "clone"}, "p": {"prompt"}, "l": {"prompt", "prompt_file", "clone"}}
    pairs["z"] = pairs["t"]
    absent = pairs.get(table.get("name", " ")[0], set())
    return name in absent or name == ("review" if "ratchet" in table else "metric")


def forms(kind: Type, value: str) -> list[Any]:
    """A string as a key of that type would hold it, the boldest form first."""
    if kind is Type.WORDS:
        return [{"K": value, value: "x"}, {"K": value}]
    return [[value]] if kind in {Type.STRINGS, Type.NAMES} else [value]


ABSENT = object()


@dataclass
class Choice:
    """One key of one table: the forms it may still take, and last of all what it was."""

    table: Table
    name: str
    label: str
    forms: list[Any]

    def step(self) -> None:
        """On to the next form, because the config does not take this one."""
        self.table[self.name] = self.forms.pop(0)
        if self.table[self.name] is ABSENT:
            del self.table[self.name]

    @property
    def taken(self) -> bool:
        return bool(self.forms)

    def caused(self, where: KeyPath, document: Table) -> bool:
        """A fault is found at the key or at an item of it, at its table, or at an agent that inherited it."""
        at: Any = document
        for part in where[:-1]:
            if at is self.table:
                return part == self.name
            at = at[part]
        own = at is self.table and where[-1] == self.name
        return (
            own or at[where[-1]] is self.table if where[-1] in at else self.label == f"defaults.{where[-1]}"
        )


def taint(document: Table, number: int, sections: Collection[str], path: Path) -> list[Choice]:
    """Put the string into every key of these sections, as far as the config takes it."""
    choices = []
    for section, table in tables(document):
        for name, key in BY_SECTION[section].items() if section in sections else ():
            if is_data(key) and not excluded(table, name):
                was = table.get(name, ABSENT)
                hostile = forms(key.type, mark(number, f"{section}.{name}"))
                if isinstance(was, dict):
                    hostile = [{**was, **form} for form in hostile]
                choices.append(Choice(table, name, f"{section}.{name}", [*hostile, was]))
    for choice in choices:
        choice.step()
    while faults := refused(document, path):
        back = [
            choice for choice in choices if choice.taken and any(choice.caused(f, document) for f in faults)
        ]
        assert back, f"the skeleton itself is refused: {faults}"
        for choice in back:
            choice.step()
    return choices


def refused(document: Table, path: Path) -> list[KeyPath]:
    report = Findings()
    Build(
        document, str(path), report, strict=False, ground=False, is_file=lambda _: True, profiles=None
    ).fleet()
    return [finding.where for finding in report.errors]


# --- what lies where the declared paths lead -----------------------------------------------------------


def furnish(fleet: Fleet) -> None:
    """Every directory and file that the fleet names, each file with words of its own."""
    places = {fleet.project_dir, *(m.dir for m in fleet.members if not getattr(m, "clone", ""))}
    for place in {*places, *(a.clone for a in fleet.agents if a.clone.startswith("/"))}:
        write(f"{place}/rec", RECORDER, 0o700)
    for agent in fleet.agents:
        backend = fleet.backend_of(agent)
        if backend.name[0] == "t":
            write(f"{agent.dir}/{backend.bin}", RECORDER, 0o700)
        for path in filter(None, (agent.prompt_file, agent.wake.prompt_file if agent.wake else "")):
            write(path, f"{HOSTILE[number_of(agent)]} is what {agent.name} reads")
        if agent.kind == "loop":
            write(f"{fleet.loop.roles_dir}/{agent.role}.md", f"Be {agent.name}.")
    for member in fleet.members:
        if member.env_file:
            write(member.env_file, f"FILED={member.name[1:]}\n")
    write(fleet.loop.kickoff_template, "{role}|{plan}|{status}|{phase_id}\n")


def number_of(member: Member) -> int:
    return int(member.name[1:])


def write(path: str, text: str, mode: int = 0o600) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_bytes(text.encode())
    os.chmod(path, mode)


# --- what became of it ----------------------------------------------------------------------------------


def obeyed(*places: Path) -> list[str]:
    """Files that only a string that was obeyed can have made."""
    return [str(found) for place in places for found in place.rglob("pwned-*")]


def arrived(fleet: Fleet, member: Member) -> None:
    """The program in the pane got exactly what was declared."""
    base = Path(dict(member.env)["RECORD"])
    until(lambda: base.with_suffix(".done").exists())
    pairs = base.with_suffix(".env").read_bytes().decode().split("\0")
    env = dict(pair.partition("=")[::2] for pair in pairs if pair)
    said = base.with_suffix(".arg").read_bytes().decode().split("\0")[:-1]
    stood = base.with_suffix(".done").read_bytes().decode().removesuffix("\n")
    assert {k: env.get(k) for k, _ in member.env} == dict(member.env)
    assert stood == os.path.realpath(member.dir)
    assert env.get("FILED") == (member.name[1:] if member.env_file else None)
    if member.has_screen:
        kickoff = f"{fleet.log_dir}/state/kickoff-{member.session}.txt"
        assert said == expected(fleet, member, kickoff)


def expected(fleet: Fleet, agent: Member, kickoff: str) -> list[str]:
    """The words of its command line, as the three kinds of backends have them."""
    phase = fleet.loop.phases[0]
    model = model_in(agent, phase) if agent.kind == "loop" else agent.model
    backend = fleet.backend_of(agent)
    words = Path(kickoff).read_bytes().decode()
    if backend.prompt_delivery == "exec":
        assert words == (Path(agent.prompt_file).read_bytes().decode() if agent.prompt_file else agent.prompt)
        return [model, kickoff, agent.session]
    if backend.prompt_delivery == "ping":
        slots = f"{agent.role}|{phase.plan}|{phase.status}|{phase.id}"
        assert words == f"{slots}\n\nBe {agent.name}.\n", words
        return [backend.server, agent.dir, agent.dir]
    prompt = agent.prompt.replace("\r\n", "\n")
    assert words == prompt
    if {c for c in prompt if unicodedata.category(c) == "Cc"} - {"\n", "\t"}:
        prompt = f"Read {kickoff} and follow it."
    said = [*filter(None, [backend.prompt_mark]), prompt] if prompt else []
    return ["-f", *(["--model", model] if model else []), *said]


def presentable(text: str) -> bool:
    return not {c for c in text if not c.isprintable() and c != "\n"}


# --- the tests -------------------------------------------------------------------------------------------


def test_every_section_is_in_the_skeleton_and_every_excuse_is_a_key(tmp_path):
    document = skeleton(tmp_path) | {"defaults": {}}
    wordy = {s for s, keys in BY_SECTION.items() if any(k.type in WORDY for k in keys.values())}
    assert wordy <= {section for section, _ in tables(document)}
    assert set(SHELL) <= {f"{section}.{name}" for section, keys in BY_SECTION.items() for name in keys}
    assert len(HOSTILE) > 40
    assert all(
        "%" in text.replace("%%", "")[1:] for text in HOSTILE
    )  # each leaves its mark, never as a first letter


def numbered(part: Table, n: int) -> Table:
    """A skeleton whose names bear a number, so that many of them make one file."""
    for row in (*part["agent"], *part["service"]):
        row["name"] += f"{n}"
        row["env"]["RECORD"] += f"{n}"
        for key in ("role", "backend"):
            if row.get(key, "x") != "x":
                row[key] += f"{n}"
    part["loop"]["on_complete"]["run"] += f"{n}"
    part["loop"]["phases"][0] |= {"id": f"p{n}", "status": f"S{n}"}
    backends = part["backend"]
    part["backend"] = {"x": backends["x"], f"t{n}": backends["t"], f"l{n}": backends["l"]}
    return part


@pytest.mark.parametrize("half", [0, 1])
def test_hostile_words_in_every_key_of_agents_services_backends_and_phases(make, tmp_path, half):
    """I42, R049, T08: two fleets, as a file has a largest size, from up to down; nobody spoils another."""
    p = make(name="p")
    records = tmp_path / "records"
    records.mkdir()
    whole: Table = {
        "defaults": {"session_prefix": p.prefix, "log_dir": ".ao-state"},
        "backend": {},
        "price": {},
    }
    taken: Counter[str] = Counter()
    phases: list[Table] = []
    for n in range(half, len(HOSTILE), 2):
        part = numbered(skeleton(records), n) | {"defaults": dict(whole["defaults"])}
        choices = taint(part, n, BY_SECTION.keys() - ONE_A_FLEET, p.config)
        taken.update({c.label for c in choices if c.taken})
        cloned = next(row for row in part["agent"] if row["name"][0] == "p")
        cloned["dir"] = f"p{n}/{cloned.get('dir', 'd')}"  # a place of its own, which nobody has made yet
        name = mark(n, "backend.bin").replace("/", "|")
        part["backend"][f"t{n}"]["bin"] = f"./{name}"
        part["price"] = {mark(n, "price"): part["price"]["m"]}
        for section in ("backend", "price"):
            whole[section] |= part[section]
        for section in ("agent", "service", "notify"):
            whole.setdefault(section, []).extend(part[section])
        phases.extend(part["loop"].pop("phases"))
        whole.setdefault("loop", part["loop"])
    assert {"agent.model", "agent.prompt", "agent.dir", "service.env", "backend.server"} <= set(taken)
    p.config.write_text(
        tomli_w.dumps(whole | {"loop": {**whole["loop"], "phases": phases}}), encoding="utf-8"
    )
    fleet = config.load(str(p.config))
    furnish(fleet)
    git(str(p.root))
    started = [m for m in fleet.members if m.enabled and clones(m)]

    told = JSONDecoder().raw_decode(p.agents("up", "--no-wait", "--json", code=None))[0]["agents"]
    assert {row["name"] for row in told if row["result"] == "started"} == {m.name for m in started}, told
    for member in started:
        arrived(fleet, member)
    facts = p.json("status")
    models = {row["name"]: row["model"] for row in facts["agents"]}
    assert {a.name: models[a.name] for a in started if not (a.is_service or a.is_loop)} == {
        a.name: a.model for a in started if not (a.is_service or a.is_loop)
    }
    for words in (("status",), ("explain", f"t{half}"), ("events",), ("phase", "show"), ("validate",)):
        assert presentable(p.agents(*words, code=None)), words

    again = [m for m in started if m.name in {"t3", "p13", "l17", "s21", "t4", "p14", "l18", "s22"}]
    for member in again:
        Path(dict(member.env)["RECORD"] + ".done").unlink()
        os.kill(p.pid(member.name), signal.SIGKILL)
    for member in again:  # by the watchdog this time
        arrived(fleet, member)
    assert p.json("down")["ok"]
    assert not p._carried()
    assert not obeyed(tmp_path, ENGINE, Path.cwd())


def clones(agent: Member) -> bool:
    """An address that nobody answers leaves only its own agent without a home."""
    return not agent.clone or agent.clone.startswith("/")


@pytest.fixture
def hostile(make, tmp_path) -> Callable[[int], tuple[Project, Fleet]]:
    """A project in a place with a hostile name, with that string in everything that a file says once."""

    def build(number: int) -> tuple[Project, Fleet]:
        p = make(name=mark(number, "the-path").replace("/", "|"))
        (tmp_path / "records").mkdir()
        document = numbered(skeleton(tmp_path / "records"), number)
        document["defaults"] = {"session_prefix": p.prefix, "log_dir": ".ao-state"}
        taint(document, number, ONE_A_FLEET | {"loop.phases", "loop.phases.gates"}, p.config)
        p.config.write_text(tomli_w.dumps(document), encoding="utf-8")
        fleet = config.load(str(p.config))
        p.log_dir = Path(fleet.log_dir)
        furnish(fleet)
        git(fleet.loop.handoff.repo)
        return p, fleet

    return build


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_words_in_the_projects_own_path_and_in_what_a_file_says_once(hostile, tmp_path, number):
    """I42, E4: paths of the state, the loop, the handoff and of the file itself, with a whole tick."""
    p, fleet = hostile(number)
    code, said = verb(p.config, "up", *(m.name for m in fleet.members), "--no-wait")
    assert code == 0, said
    for member in fleet.members:
        arrived(fleet, member)
    tmux = ControlTmux(server_of(fleet.ground))
    world = real_world(fleet, tmux)
    jobs = Jobs(world.clock.mono, world.disk, f"{fleet.log_dir}/state/jobs")
    read = Reloader(world, str(p.config), config.parse)
    helpers = real_helpers(fleet, world)
    dog = Supervisor(world, read, helpers, govern=lambda w, house: LoopKeeper(w, house, jobs))
    assert dog.open() == ""
    dog.begin()
    for _ in range(3):
        dog.tick()
    dog.close("the test has seen enough")
    jobs.close()
    tmux.close()
    assert not [e for e in p.events() if e["type"] == "watchdog.degraded"]
    for words in (("status",), ("phase", "show"), ("gate", "--all"), ("logs", f"t{number}"), ("events",)):
        assert presentable(verb(p.config, *words)[1]), words
    assert verb(p.config, "down")[0] == 0
    assert not p._carried()
    assert not obeyed(tmp_path, ENGINE, Path.cwd())


@pytest.mark.parametrize("door", ["supervisor.launch.quote", "host.tmux.language.shlex.quote"])
def test_a_door_left_open_would_be_noticed(hostile, tmp_path, monkeypatch, door):
    """The marks are no empty threat: where a value is not quoted, they appear."""
    monkeypatch.setattr(f"fleet.{door}", lambda text: text)
    p, fleet = hostile(HOSTILE.index("$(touch %)"))
    verb(p.config, "up", *(m.name for m in fleet.members), "--no-wait")
    until(lambda: obeyed(tmp_path))


def git(folder: str) -> None:
    """A repository with a claim in it, so that there is something to read."""
    os.makedirs(folder, exist_ok=True)
    words = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@x"]
    for command in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "claim(x): y"]):
        subprocess.run([*words, *command], check=True, capture_output=True)
