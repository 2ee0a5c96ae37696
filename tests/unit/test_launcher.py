"""The launcher: from anywhere, with any Python, with or without its libraries, alone or four at once."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from fleet import bootstrap

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = ("agents.py", "agentlog.py", "agent-log.py")


def run(argv, **options):
    return subprocess.run(
        [str(a) for a in argv], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options
    )


def engine(where: Path) -> Path:
    """A copy of the engine, small enough to be made for a test."""
    where.mkdir(parents=True)
    for name in (*LAUNCHERS, *bootstrap.LOCKS.values()):
        shutil.copy2(ROOT / name, where / name)
    shutil.copytree(ROOT / "fleet", where / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    return where


def old_pythons():
    """Interpreters of this machine that are too old to run us."""
    found = {}
    for name in ("python2", "python2.7", *(f"python3.{minor}" for minor in range(3, 11))):
        for folder in (
            *os.environ["PATH"].split(os.pathsep),
            *map(str, Path.home().glob(".pyenv/versions/*/bin")),
        ):
            path = os.path.join(folder, name)
            if name not in found and ".pyenv/shims" not in folder and os.access(path, os.X_OK):
                found[name] = path
    return sorted(found.items())


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_an_old_python_gets_one_sentence(launcher):  # R002
    # The check itself, under this Python: the oldest acceptable version is pretended to be newer than we are.
    text = (ROOT / "agents.py").read_text(encoding="utf-8").replace("OLDEST = (3, 11)", "OLDEST = (3, 99)")
    done = run([sys.executable, "-c", text.replace("__file__", "'agents.py'")])
    assert done.returncode == 2
    assert done.stderr.startswith("error: agents.py needs Python 3.11 or newer, but ")
    assert done.stderr.count("\n") == 1
    for _, python in old_pythons():
        done = run([python, ROOT / launcher, "status"])
        assert done.returncode == 2, python
        assert "needs Python 3.11 or newer" in done.stderr
        assert "Traceback" not in done.stderr
        assert "SyntaxError" not in done.stderr


def test_it_runs_from_any_directory_through_a_link_and_as_a_submodule(tmp_path):  # R011, T04
    link = tmp_path / "elsewhere" / "fleet-driver"
    link.parent.mkdir()
    link.symlink_to(ROOT / "agents.py")
    engine(tmp_path / "project" / "engine")
    for argv, cwd in (
        ([ROOT / "agents.py", "version"], "/"),
        ([sys.executable, link, "version"], tmp_path),
        ([sys.executable, "engine/agents.py", "version"], tmp_path / "project"),
        ([sys.executable, "-P", "engine/agents.py", "version"], tmp_path / "project"),
    ):
        done = run(argv, cwd=cwd)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("agents.py ")


def test_a_module_in_the_callers_directory_cannot_take_our_place(tmp_path):
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "__init__.py").write_text("raise SystemExit('the wrong fleet')")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert run([sys.executable, ROOT / "agents.py", "version"], cwd=tmp_path, env=environ).returncode == 0


def test_asking_needs_no_library_at_all(tmp_path):  # T05
    """-S hides every installed package: what still works uses the standard library only."""
    init = run([sys.executable, "-S", ROOT / "agents.py", "--help"], cwd=tmp_path)
    assert init.returncode == 0, init.stderr
    assert not (ROOT / ".venv.lock").exists() or init.stderr == ""


# -- building the environment, from a wheel of our own and without a network ------------------------------


def wheel(folder: Path, name: str = "tinylib", version: str = "1.0") -> str:
    """A package of one module; returns its requirement line with digest."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "VALUE = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
        f"{len(text)}\n"
        for path, text in files.items()
    )
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(member, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def house(tmp_path):
    """An engine whose locks ask for tinylib, and the wheels to install it from."""
    home = engine(tmp_path / "engine")
    line = wheel(tmp_path / "wheels")
    for name in bootstrap.LOCKS.values():
        (home / name).write_text(f"# {name}\n{line}")
    return home


def offline(tmp_path, *, uv: bool = False):
    """No network by construction: only the wheel directory, and no uv unless asked for."""
    folders = [
        f for f in os.environ["PATH"].split(os.pathsep) if uv or not os.path.exists(os.path.join(f, "uv"))
    ]
    return {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join(folders),
        "AO_WHEELS": str(tmp_path / "wheels"),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_OFFLINE": "1",
    }


ENTER = (
    "import sys; sys.path.insert(0, {home!r}); from fleet import bootstrap; bootstrap.enter(['tinylib']); \
import tinylib; print(tinylib.VALUE, sys.prefix)"
)


@pytest.mark.long
def test_four_starts_at_once_build_it_once_and_all_run_inside(house, tmp_path):
    program = ENTER.format(home=str(house))
    argv = [sys.executable, "-c", program]
    starts = [
        subprocess.Popen(
            argv, env=offline(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    told = [start.communicate() for start in starts]
    assert [start.returncode for start in starts] == [0] * 4, told
    assert {out for out, _ in told} == {f"42 {house}/.venv\n"}
    assert sum(f"setting up {house}" in err for _, err in told) == 1
    assert [p.name for p in house.iterdir() if p.name.startswith(".venv-")] == []

    # A second start finds it ready and says nothing; the base interpreter is not asked to install again.
    again = run(argv, env={**offline(tmp_path), "AO_WHEELS": "/nowhere"})
    assert (again.returncode, again.stderr) == (0, "")

    # Another lock, another environment; what a killed build left behind is swept.
    (house / ".venv-build-dead").mkdir()
    (house / "requirements.lock").write_text(wheel(tmp_path / "wheels", version="2.0"))
    renewed = run(argv, env=offline(tmp_path))
    assert renewed.returncode == 0, renewed.stderr
    assert "setting up" in renewed.stderr
    assert [p.name for p in house.iterdir() if p.name.startswith(".venv-")] == []


@pytest.mark.long
def test_a_wrong_digest_installs_nothing_and_says_why(house, tmp_path):
    (house / "requirements-dev.lock").write_text("tinylib==1.0 --hash=sha256:" + "0" * 64 + "\n")
    environ = {**offline(tmp_path), "AO_WHEELS": "wheels"}  # relative to where the command is given
    done = run([sys.executable, house / "fleet" / "bootstrap.py", "dev"], env=environ, cwd=tmp_path)
    assert done.returncode == 1
    said = f"error: AO_WHEELS={tmp_path}/wheels does not hold what requirements-dev.lock asks for"
    assert done.stderr.splitlines()[-1].startswith(said)
    assert not (house / ".venv").exists()


def test_an_environment_that_is_not_ours_is_never_replaced(house, tmp_path):
    (house / ".venv").mkdir()
    (house / ".venv" / "precious").write_text("mine")
    done = run([sys.executable, house / "fleet" / "bootstrap.py"], env=offline(tmp_path))
    assert done.returncode == 1
    assert "not ours to replace" in done.stderr
    assert (house / ".venv" / "precious").read_text() == "mine"


# -- decisions, without installing anything --------------------------------------------------------------


@pytest.fixture
def bare(tmp_path, monkeypatch):
    monkeypatch.delenv("AO_VENV", raising=False)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    for name in bootstrap.LOCKS.values():
        (tmp_path / name).write_text(f"# {name}\n")
    return str(tmp_path)


def stamped(home: str, content: str) -> None:
    binary = Path(home, ".venv", "bin", "python")
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    Path(home, ".venv", bootstrap.STAMP).write_text(content)


@pytest.mark.parametrize(
    ("built", "wanted", "usable"),
    [
        ("base", "base", True),
        ("full", "base", True),
        ("dev", "full", True),
        ("base", "full", False),
        ("full", "dev", False),
    ],
)
def test_an_environment_serves_every_smaller_set(bare, built, wanted, usable):
    stamped(bare, bootstrap.stamp(built, bare))
    assert bool(bootstrap.ready(wanted, home=bare)) is usable


def test_a_changed_lock_or_a_missing_python_makes_it_stale(bare):
    stamped(bare, bootstrap.stamp("base", bare))
    assert bootstrap.ready("base", home=bare)
    Path(bare, ".venv", "bin", "python").unlink()
    assert not bootstrap.ready("base", home=bare)
    stamped(bare, bootstrap.stamp("base", bare))
    Path(bare, "requirements.lock").write_text("other\n")
    assert not bootstrap.ready("base", home=bare)


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (
            "ERROR: Could not find a version (from: none)\nERROR: No matching distribution found for x",
            "AO_WHEELS",
        ),
        ("Temporary failure in name resolution", "package index could not be reached"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "pip failed: ERROR: THESE PACKAGES"),
        ("", "pip failed: it said nothing"),
    ],
)
def test_a_failed_install_says_what_to_do(bare, said, means):
    def fake(argv):
        return (1, said) if "pip" in argv else (0, "")

    with pytest.raises(bootstrap.CannotBuild, match=means):
        bootstrap.build("base", home=bare, run=fake)
    assert not [name for name in os.listdir(bare) if name.startswith(".venv")]


def test_a_python_without_venv_is_told_apart(bare, monkeypatch):
    monkeypatch.setattr(bootstrap, "missing", lambda modules: ["ensurepip"])
    there = {"apt-get", "tmux", "git"}
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: name if name in there else None)
    wanted = rf"apt-get update && .*apt-get install -y python3\.{sys.version_info[1]}-venv$"
    with pytest.raises(bootstrap.CannotBuild, match=wanted):
        bootstrap.build("base", home=bare, run=lambda argv: (0, ""))


def test_uv_is_used_when_present_and_pip_when_it_fails(bare, monkeypatch):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/bin/{name}")
    for broken, tools in ((False, ["uv", "uv"]), (True, ["uv", "venv", "pip"])):
        used = []

        def fake(argv, used=used, broken=broken):
            tool = "uv" if argv[0] == "/bin/uv" else "pip" if "pip" in argv else "venv"
            used.append(tool)
            assert tool == "venv" or "--require-hashes" in argv or argv[1] == "venv"
            return (int(broken and tool == "uv"), "")

        bootstrap.build("base", home=bare, run=fake)
        assert used == tools


@pytest.fixture
def failing(bare, monkeypatch):
    """`enter` in a house where every build fails as told; what was tried is noted."""
    tried, fault = [], [bootstrap.CannotBuild("no network")]

    def fails(wanted, *, home):
        tried.append(wanted)
        raise fault[0]

    monkeypatch.setattr(bootstrap, "HOME", bare)
    monkeypatch.setattr(bootstrap, "build", fails)
    monkeypatch.setattr(bootstrap.ensure, "__kwdefaults__", {"home": bare, "patient": True})
    return tried, fault


@pytest.mark.parametrize("built", [False, True])
def test_up_takes_a_venv_that_is_there_and_builds_none(tmp_path, built):
    house = engine(tmp_path / "house")
    config = tmp_path / "agents.toml"
    head = '[defaults]\nsession_prefix = "aotest-venv-"\nlog_dir = "state"\n'
    agent = '[[agent]]\nname = "one"\nkind = "persistent"\nbackend = "demo"\n'
    config.write_text(head + agent, encoding="ascii")
    (tmp_path / "bin").mkdir()
    for name in ("tmux", "git"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    env = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path), "PIP_INDEX_URL": "http://127.0.0.1:9/"}
    plain = sys._base_executable
    if built:
        python = house / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\necho entered\n", encoding="ascii")
        python.chmod(0o755)
        asked = f"from fleet import bootstrap; print(bootstrap.stamp('base', {str(house)!r}))"
        stamp = run([plain, "-P", "-c", asked], cwd=house, env={**env, "PYTHONPATH": str(house)}).stdout
        (house / ".venv" / bootstrap.STAMP).write_text(stamp, encoding="ascii")
    done = run([plain, "-S", house / "agents.py", "up", "--dry-run", "--config", config], env=env)
    assert done.returncode == 0, done.stderr
    assert (done.stdout == "entered\n") is built, done.stdout
    assert "setting up" not in done.stderr
    assert built or not [p for p in house.iterdir() if p.name.startswith(".venv")]


def test_an_optional_library_is_gone_without(failing, capsys):
    bootstrap.enter(["no_such_module"], optional=True)
    assert "going on without no_such_module: no network" in capsys.readouterr().err
    with pytest.raises(bootstrap.CannotBuild, match="no network"):
        bootstrap.enter(["no_such_module"])


def test_an_index_is_not_waited_for_while_it_cannot_be_reached(failing, capsys, monkeypatch):
    tried, fault = failing
    with socket.socket() as index:
        index.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{index.getsockname()[1]}"
        fault[0] = bootstrap.CannotBuild("no network", address)
        for _ in range(2):
            bootstrap.enter(["no_such_module"], optional=True)
        assert tried == ["base"]
        assert "going on without no_such_module: as before, no network" in capsys.readouterr().err
        monkeypatch.setenv("PIP_INDEX_URL", "somewhere else")  # another try than the one that failed
        bootstrap.enter(["no_such_module"], optional=True)
        assert tried == ["base"] * 2
        bootstrap.enter(["no_such_module"], optional=True)
        assert tried == ["base"] * 2
        index.listen()
        bootstrap.enter(["no_such_module"], optional=True)
        assert tried == ["base"] * 3


def test_what_was_mended_is_tried_again_at_once(failing):
    """Whatever the cause was: only an index that still cannot be reached keeps a start from trying."""
    tried, fault = failing
    fault[0] = bootstrap.CannotBuild("python has no venv module")
    for _ in range(3):
        bootstrap.enter(["no_such_module"], optional=True)
    assert tried == ["base"] * 3


@pytest.mark.parametrize(
    ("said", "proxy", "address"),
    [
        ("HTTPSConnectionPool(host='index.example', port=443): Max retries", "", "index.example:443"),
        ("Pool(host='index.example', port=443): ", "http://proxy.example:3128/", "proxy.example:3128"),
        ("host='index.example', port=443): ProxyError('Cannot connect to proxy.')", "", ""),
        ("No matching distribution found for x", "", ""),
    ],
)
def test_the_address_that_cannot_be_reached_is_known(monkeypatch, said, proxy, address):
    for name in ("HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    assert bootstrap.address_of(said) == address


def test_doctor_tells_why_the_last_build_failed(house, tmp_path):
    shutil.rmtree(tmp_path / "wheels")
    environ = {**offline(tmp_path), "AO_WHEELS": "wheels"}
    done = run([sys.executable, "-S", house / "fleet" / "bootstrap.py"], env=environ, cwd=tmp_path)
    assert done.returncode == 1
    assert f"error: AO_WHEELS={tmp_path}/wheels is no directory" in done.stderr
    said = run([sys.executable, "-S", house / "agents.py", "doctor"], env=environ, cwd=tmp_path).stdout
    (line,) = [line for line in said.splitlines() if "libraries: " in line]
    assert f"failed: AO_WHEELS={tmp_path}/wheels is no directory" in line


# -- which Python ------------------------------------------------------------------------------------------


def pythons(folder: Path, **versions: str) -> str:
    """A PATH whose Pythons say that they are of these versions; one that says nothing does not run."""
    folder.mkdir(parents=True)
    for name, version in versions.items():
        program = folder / name.replace("_", ".")
        minor = version.partition(".")[2]
        answer = f"echo {minor if version.startswith('3.') else 0}" if version else "exit 127"
        program.write_text(f"#!/bin/sh\n{answer}\n")
        program.chmod(0o755)
    (folder / "sort").symlink_to(shutil.which("sort"))
    return str(folder)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"python3": "3.11"}, "python3"),
        ({"python3": "3.12", "python3_14": "3.14"}, "python3"),  # what ./agents.py runs under
        ({"python3": "3.9", "python3_12": "3.12", "python3_14": "3.14"}, "python3.14"),
        ({"python3_14": "3.14"}, "python3.14"),
        ({"python3": "3.15", "python3_13": "3.13"}, "python3.13"),  # proved before unproved
        ({"python3": "3.10", "python3_14": "", "python3_11": "3.11"}, "python3.11"),  # one that does not run
        ({"python3_27": "3.27", "python3_100": "3.100"}, "python3.27"),  # not yet thought of
        ({"python": "3.13"}, "python"),
        ({"python": "2.7", "python3_16": "3.16"}, "python3.16"),
        ({"python3": "3.10", "python3_9": "3.9"}, ""),
        ({"python3_14t": "3.14", "python3_14-config": ""}, ""),
        ({}, ""),
    ],
)
def test_the_python_is_found_whatever_it_is_called(tmp_path, there, chosen):
    path = pythons(tmp_path / "bin", **there)
    done = run(["/bin/sh", ROOT / "fleet" / "find-python.sh"], env={"PATH": path})
    assert done.stdout.strip() == (f"{path}/{chosen}" if chosen else "")
    assert done.returncode == (0 if chosen else 2)
    assert ("error: no Python 3.11 or newer on PATH" in done.stderr) == (not chosen)


def test_the_python_that_is_asked_for_is_the_one_or_none(tmp_path):
    path = pythons(tmp_path / "bin", python3="3.12", python3_11="3.11", python3_9="3.9")
    finder = ["/bin/sh", ROOT / "fleet" / "find-python.sh"]
    for asked in ("python3.11", "bin/python3.11", f"{path}/python3.11"):
        done = run(finder, env={"PATH": path, "PYTHON": asked}, cwd=tmp_path)
        assert done.stdout == f"{path}/python3.11\n"
    done = run(finder, env={"PATH": path, "PYTHON": "python3.9"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: PYTHON is python3.9, and that is no Python 3.11 or newer\n"


def test_both_scripts_and_the_launcher_ask_the_same_place():
    for name in ("smoke.sh", "tests/run.sh", "agents.py"):
        assert "find-python.sh" in (ROOT / name).read_text(encoding="utf-8")


def test_the_proved_pythons_are_the_declared_ones():
    script = (ROOT / "fleet" / "find-python.sh").read_text(encoding="utf-8")
    bounds = dict(re.findall(r"^(oldest|newest)=(\d+)$", script, re.MULTILINE))
    oldest, newest = int(bounds["oldest"]), int(bounds["newest"])
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert declared["requires-python"] == f">=3.{oldest}"
    stated = {c.rpartition(" ")[2] for c in declared["classifiers"] if "Python :: 3." in c}
    assert stated == {f"3.{minor}" for minor in range(oldest, newest + 1)}
    assert f"Python 3.{oldest} to 3.{newest}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_inside_the_environment_a_missing_module_ends_it_instead_of_looping(bare, monkeypatch):
    monkeypatch.setenv(bootstrap.ENTERED, "1")
    with pytest.raises(bootstrap.CannotBuild, match="lacks no_such_module"):
        bootstrap.enter(["no_such_module"])
    assert bootstrap.ENTERED not in os.environ
