"""The launcher: from anywhere, with any Python, with or without its libraries, alone or four at once."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
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


def test_a_wrong_digest_installs_nothing_and_says_why(house, tmp_path):
    (house / "requirements.lock").write_text("tinylib==1.0 --hash=sha256:" + "0" * 64 + "\n")
    done = run([sys.executable, house / "fleet" / "bootstrap.py"], env=offline(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: AO_WHEELS=")
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
    with pytest.raises(bootstrap.CannotBuild, match="python3-venv"):
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


def test_an_optional_library_is_gone_without_and_not_waited_for_twice(bare, monkeypatch, capsys):
    tried = []

    def fails(wanted, *, home):
        tried.append(wanted)
        raise bootstrap.CannotBuild("no network")

    monkeypatch.setattr(bootstrap, "HOME", bare)
    monkeypatch.setattr(bootstrap, "build", fails)
    monkeypatch.setattr(bootstrap.ensure, "__kwdefaults__", {"home": bare, "patient": True})
    bootstrap.enter(["no_such_module"], optional=True)
    assert "going on without no_such_module: no network" in capsys.readouterr().err
    bootstrap.enter(["no_such_module"], optional=True)
    assert tried == ["base"]
    with pytest.raises(bootstrap.CannotBuild, match="no network"):
        bootstrap.enter(["no_such_module"])
    assert tried == ["base", "base"]


def test_inside_the_environment_a_missing_module_ends_it_instead_of_looping(bare, monkeypatch):
    monkeypatch.setenv(bootstrap.ENTERED, "1")
    with pytest.raises(bootstrap.CannotBuild, match="lacks no_such_module"):
        bootstrap.enter(["no_such_module"])
    assert bootstrap.ENTERED not in os.environ
