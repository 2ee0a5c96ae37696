"""The rooms of the house, kept apart by walking every import."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "fleet").rglob("*.py"))

# What each room may import of ours, besides itself.
MAY_IMPORT = {
    "text": set(),
    "times": set(),
    "core": {"text", "times"},
    "ports": {"core", "times"},
    "config": {"text", "times", "core", "backends", "reading"},
    "backends": {"text", "times", "core", "reading", "engine"},
    "store": {"text", "times", "core", "ports", "reading"},
    # agentlog is a program of its own and reads agents.toml
    "tokens": {"text", "times", "core", "ports", "config", "backends", "store", "reading", "engine"},
    "host": {"text", "times", "core", "ports", "store", "reading", "umask"},
    "supervisor": {
        "text", "times", "core", "ports", "config", "backends", "store", "host", "tokens", "reading",
        "engine",
    },
    "extras": {"text", "core", "ports", "config", "store", "host", "reading", "engine"},
    "verbs": {
        "text", "times", "core", "ports", "config", "backends", "store", "host", "supervisor", "tokens",
        "reading", "engine", "umask", "bootstrap",
    },
    "scripted_agent": {"text", "backends.scripted"},
    # the last one to name the package that is missing
    "bootstrap": {"umask", "engine", "ports", "host.locks", "host.packages"},
    "__main__": {"verbs", "tokens", "umask"},
    "engine": set(),
    "umask": set(),
    "reading": set(),
}  # fmt: skip
PURE_STDLIB = set(
    """__future__ base64 binascii bisect calendar collections dataclasses datetime difflib enum fnmatch
    functools hashlib heapq itertools json math operator posixpath re shlex signal stat statistics string
    textwrap types typing unicodedata warnings zlib zoneinfo""".split()  # noqa: SIM905  easier to read than thirty quoted words
)
IMPURE_CALLS = {
    "open",
    "print",
    "input",
    "exec",
    "eval",
    "now",
    "utcnow",
    "today",
    "sleep",
    "monotonic",
    "kill",
}
THIRD_PARTY_ROOMS = {"times", "host", "backends", "tokens", "extras", "verbs"}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "fleet").parts[0].removesuffix(".py")


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.AST):
    """(module, line, at the top of the file?) for every import, typing-only ones included."""
    nested = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.Lambda) for n in ast.walk(f)
    }
    for node in ast.walk(tree):
        top = id(node) not in nested
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            module = node.module or ""
            plain = module != "fleet" and not (ROOT / module.replace(".", "/")).is_dir()
            yield from ((module if plain else f"{module}.{a.name}", node.lineno, top) for a in node.names)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_room_imports_only_the_rooms_below_it(path):
    room = room_of(path)
    if room == "__init__":
        room = "core"
    for module, line, _ in imports(tree_of(path)):
        parts = module.split(".")
        if parts[0] != "fleet" or len(parts) == 1 or parts[1].startswith("__"):
            continue
        target, allowed = parts[1], MAY_IMPORT[room]
        if room == "verbs" and target == "extras":  # a guest is imported only by its own verb
            assert parts[2] == path.stem, f"{path}:{line}: extra {parts[2]} imported by another verb"
            continue
        assert target == room or target in allowed or ".".join(parts[1:3]) in allowed, (
            f"{path}:{line}: {module}"
        )


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) in {"text", "times", "core"}], ids=named)
def test_core_has_no_clock_no_files_and_no_voice(path):
    tree = tree_of(path)
    for module, line, _ in imports(tree):
        first = module.split(".")[0]
        pure = PURE_STDLIB | ({"fleet"} if room_of(path) == "core" else {"fleet", "dateutil"})
        assert first in pure, f"{path}:{line}: core imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            assert name not in IMPURE_CALLS, f"{path}:{node.lineno}: core calls {name}()"


# Who may read the machine's clocks or wait by them, and why. All others get a Clock handed in.
READS_CLOCKS = {
    "fleet/host/clock.py": "the clock itself",
    "fleet/bootstrap.py": "runs before there is anything that could hand it one",
    "fleet/scripted_agent": "a program of its own: an agent, not the fleet",
    "fleet/backends/scripted/records.py": "what that program writes",
    "fleet/tokens/agentlog.py": "a program of its own: agentlog",
    "fleet/tokens/files.py": "compares the dates of the file system with the clock that makes them",
}
CLOCKS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "clock_gettime", "sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}


def clocks_read(tree: ast.Module):
    """Every mention of a clock, called or handed on; `strftime` alone reads one too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = getattr(owner, "id", getattr(owner, "attr", ""))
            if node.attr in CLOCKS.get(name, ()):
                yield f"{node.lineno}: {name}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"{node.lineno}: from time import"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"localtime", "gmtime"}:
            if not node.args:
                yield f"{node.lineno}: {node.func.attr}()"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "time.strftime" and len(node.args) == 1:
            yield f"{node.lineno}: strftime of now"


def test_only_the_clock_reads_the_clocks():
    found = {named(path): list(clocks_read(tree_of(path))) for path in FILES}
    found = {name: lines for name, lines in found.items() if lines}
    others = {n: lines for n, lines in found.items() if not n.startswith(tuple(READS_CLOCKS))}
    assert not others
    unused = [path for path in READS_CLOCKS if not any(name.startswith(path) for name in found)]
    assert not unused, "an exception that nothing needs any more"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_libraries_are_imported_where_they_are_needed_and_not_before(path):
    for module, line, top in imports(tree_of(path)):
        first = module.split(".")[0]
        if first == "fleet" or first in sys.stdlib_module_names:
            continue
        # an extra is itself imported only when its verb runs: see the next test
        late = not top or room_of(path) == "extras"
        assert late, f"{path}:{line}: {module} is imported by merely importing this file"
        assert room_of(path) in THIRD_PARTY_ROOMS, f"{path}:{line}: {module}"


MODULES = {"gitpython": "git", "python-dateutil": "dateutil"}  # where the two names differ beyond - and _


def test_every_library_has_a_job():
    """What a user's machine installs is imported by the product, and its decision says what for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(x for name, xs in extras.items() if name != "dev" for x in xs)]
    used = {module.split(".")[0] for path in FILES for module, _, _ in imports(tree_of(path))}
    said = (ROOT / "docs/decisions/0011-each-library-has-one-job.md").read_text(encoding="utf-8").lower()
    for dependency in wanted:
        name = re.split(r"[<>=; ]", dependency)[0]
        assert MODULES.get(name, name.replace("-", "_")) in used, f"nothing imports {name}"
        assert dependency not in project["dependencies"] or f"| {name} |" in said, name


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) != "extras"], ids=named)
def test_an_extra_is_loaded_when_its_verb_runs_and_not_before(path):
    early = [
        f"{path}:{line}: {module}"
        for module, line, top in imports(tree_of(path))
        if top and module.startswith("fleet.extras")
    ]
    assert not early


def test_without_any_extra_everything_else_works(tmp_path):
    def but_extras(_folder, names):
        return [n for n in names if n in {"extras", "__pycache__"}]

    shutil.copytree(ROOT / "fleet", tmp_path / "fleet", ignore=but_extras)
    for name in ("agents.py", "agents.example.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    program = """
import importlib, pkgutil, sys, fleet
for module in pkgutil.walk_packages(fleet.__path__, "fleet."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
assert not [name for name in sys.modules if name.startswith("fleet.extras")]
"""
    for words in (
        ["-c", program],
        ["agents.py", "status", "--config", "agents.example.toml"],
        ["agents.py", "--help"],
    ):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


FOLDERS = sorted(path.parent.name for path in (ROOT / "fleet/backends").glob("*/profile.toml"))
OURS = {"demo", "scripted", "scripted-tui"}  # no CLI of others: the engine has these programs itself
MAKERS = {"anthropic", "openai", "chatgpt"}
# What a CLI's profile names and any program may have: proxies, certificates, credentials of third parties.
ANYBODYS = {
    "ALL_PROXY", "AWS_*", "AZURE_*", "CLOUD_ML_REGION", "GH_TOKEN", "GITHUB_TOKEN", "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS", "NO_PROXY", "SSH_AUTH_SOCK", "SSL_CERT_DIR", "SSL_CERT_FILE", "http_proxy",
    "https_proxy", "no_proxy",
}  # fmt: skip
# How terminals draw, whoever does: letters, quotes, dots, arrows, boxes and blocks, ticks, prompts.
PLAIN = re.compile(
    r"[\x00-\u2022\u2026\u203a\u2190-\u21ff\u2500-\u259f\u25cf\u2714-\u2718\u276f\u2800-\u28ff]"
)

# A CLI is named here, so many times, and why. It may only become less.
NAMED = {
    "fleet/verbs/backend.py": (2, "an example in a hint: a name that works is worth more than NAME"),
    "fleet/verbs/screen.py": (3, "the same"),
    "fleet/verbs/selftest.py": (4, "says for whom tests/live has a drill"),
    "fleet/verbs/starter.toml": (3, "the first file of a newcomer says which backends are built in"),
    "fleet/config/build.py": (1, "an example in a hint"),
    "fleet/config/keys.py": (10, "examples of the reference are such as people write"),
    "fleet/tokens/prices.toml": (37, "names of models"),
}


def words_of_clis() -> re.Pattern[str]:
    """The names, variables and glyphs that the folders of the CLIs hold."""
    names, variables, glyphs = {*MAKERS}, set(), set()
    for folder in set(FOLDERS) - OURS:
        profile = tomllib.loads((ROOT / f"fleet/backends/{folder}/profile.toml").read_text(encoding="utf-8"))
        names |= {folder, profile["bin"]}
        variables |= {*profile.get("env_pass", ()), *profile.get("nested_env", ())} - ANYBODYS
        variables |= {profile.get(key, "") for key in ("server_key_env", "model_variable")} - {""}
        shown = str([profile["screen"], *(p["re"] for p in profile["patterns"])])
        glyphs |= {sign for sign in shown if not PLAIN.match(sign)}
    parts = [rf"\b{re.escape(name.removesuffix('*'))}" for name in variables]
    parts += [f"(?i:{re.escape(name)})" for name in names]
    return re.compile("|".join([*sorted(parts, reverse=True), f"[{''.join(sorted(glyphs))}]"]))


CLI_WORDS = words_of_clis()


def test_there_are_words_to_look_for():
    for word in ("claude", "Codex", "IS_SANDBOX", "OPENCODE_CONFIG_CONTENT", "CLAUDE_CODE_", "⎿", "⏺", "■"):
        assert CLI_WORDS.search(f"x {word} x"), word


def test_only_its_folder_knows_a_cli():
    """No name, variable or glyph of one stands anywhere else, but where NAMED says why.

    `fleet/scripted_agent` is a program with a screen of its own, which only looks like another's.
    """
    found = {}
    inside = [ROOT / "fleet/backends" / folder for folder in FOLDERS]
    for path in sorted((ROOT / "fleet").rglob("*")):
        if path.suffix not in {".py", ".toml", ".md", ".sh"} or any(home in path.parents for home in inside):
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml" and room_of(path) == "scripted_agent":
            continue
        if named(path) in {"fleet/backends/lines.py", "fleet/backends/corpus.py"}:
            text = re.sub(r"[^\x00-\x7f]", "", text)  # spinners and bullets of anybody
        if count := len(CLI_WORDS.findall(text)):
            found[named(path)] = count
    assert found == {path: count for path, (count, _) in NAMED.items()}


@pytest.mark.parametrize(
    "path", [p for p in FILES if room_of(p) not in {"host", "scripted_agent"}], ids=named
)
def test_only_the_host_speaks_to_tmux(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            words = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            asks_version = words[1:] == ["-V"]
            names_tools = all(word in {"tmux", "git"} for word in words)
            assert words[0] != "tmux" or asks_version or names_tools, (
                f"{path}:{node.lineno}: a tmux command line"
            )


HOT = [
    v
    for v in ("status", "validate", "down", "logs", "version", "init")
    if (ROOT / f"fleet/verbs/{v}.py").exists()
]


@pytest.mark.parametrize("verb", HOT)
def test_the_hot_path_loads_no_library(verb):
    program = f"""
import sys
before = set(sys.modules)
import agents
import fleet.verbs.main, fleet.config, fleet.verbs.{verb}
print(*sorted({{m.split(".")[0] for m in set(sys.modules) - before}}))
"""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded = {m for m in done.stdout.split() if not m.startswith("_sysconfigdata")}  # Python's own
    assert loaded - sys.stdlib_module_names == {"agents", "fleet"}


def test_every_ignored_lint_rule_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    for rule in lint["ignore"]:
        assert re.search(rf'^\s*"{rule}",\s+# \S', text, re.MULTILINE), f"why is {rule} ignored?"


def test_the_launcher_stays_a_launcher():
    for name in ("agents.py", "agentlog.py", "agent-log.py"):
        path = ROOT / name
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
        assert os.access(path, os.X_OK)
