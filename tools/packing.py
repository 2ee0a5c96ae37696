"""The build backend: `pip install .`, `pip wheel .` and `python -m build` leave nothing in the checkout.

It is setuptools over a scratch copy. What verbs read at run time and lies outside the package (SHIPPED) is
copied into the wheel's `fleet/shipped`, under the same paths, where `fleet/engine.py` finds it. So the
repository holds one copy, and a wheel is made alike from a checkout and from an sdist.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

SHIPPED = (
    "prompts",  # init
    "examples/builder-adversary",  # demo, with what the example refers to
    "examples/calc",
    "examples/offline",
    "tests/fixtures/screens",  # selftest
)
SOURCES = (
    "fleet",
    "tools",
    *SHIPPED,
    "agents.py",
    "agentlog.py",
    "agent-log.py",
    "agents.example.toml",
    "requirements.lock",
    "requirements-full.lock",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "pyproject.toml",
)
MADE = shutil.ignore_patterns("__pycache__", "*.pyc", ".offline")  # what running leaves among the sources


def build_wheel(target: str, settings: Any = None, metadata: str | None = None) -> str:
    """A wheel, with what it needs inside the package."""
    target = os.path.abspath(target)
    metadata = os.path.abspath(metadata) if metadata else None
    with scratch() as setuptools:
        ship(".", "fleet")
        return str(setuptools.build_wheel(target, settings, metadata))


def build_sdist(target: str, settings: Any = None) -> str:
    """The sources, as they lie in a checkout."""
    target = os.path.abspath(target)
    with scratch() as setuptools:
        with open("MANIFEST.in", "w", encoding="utf-8") as file:
            file.writelines(f"{'graft' if os.path.isdir(path) else 'include'} {path}\n" for path in SOURCES)
        return str(setuptools.build_sdist(target, settings))


def build_editable(target: str, settings: Any = None, metadata: str | None = None) -> str:
    """The checkout itself, made importable: nothing is copied."""
    from setuptools import build_meta

    return str(build_meta.build_editable(target, settings, metadata))


def prepare_metadata_for_build_wheel(target: str, settings: Any = None) -> str:
    """Name, version and requirements, without building."""
    target = os.path.abspath(target)
    with scratch() as setuptools:
        return str(setuptools.prepare_metadata_for_build_wheel(target, settings))


def ship(root: str, package: str) -> None:
    """Give a package what verbs read, as an installed one has it."""
    for path in SHIPPED:
        copy(os.path.join(root, path), os.path.join(package, "shipped", path))


@contextlib.contextmanager
def scratch() -> Iterator[Any]:
    """A copy of the sources as the current directory, gone afterwards; and setuptools to build there."""
    from setuptools import build_meta

    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="fleet-build-") as folder:
        for path in SOURCES:
            copy(path, os.path.join(folder, path))
        os.chdir(folder)
        try:
            yield build_meta
        finally:
            os.chdir(here)


def copy(path: str, to: str) -> None:
    """A file or a directory."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    if os.path.isdir(path):
        shutil.copytree(path, to, ignore=MADE)
    else:
        shutil.copy2(path, to)
