"""The kickoff arrives as it was written: one byte or a megabyte, by argument, by typing and by file."""

from __future__ import annotations

import random

import pytest

from tests.tmux.project import Project, until

pytestmark = pytest.mark.tmux

HOSTILE = (
    'it\'s "quoted" $(touch evil) `touch evil` #(touch evil) #{pid} \\n %s ; -n ünï ✓ 漢字\nline two;\n tail'
)


def long(size: int) -> str:
    """Any characters that can be typed, of that many bytes."""
    rng = random.Random(size)
    words = ["plain", "wörter", "漢字", "✓", "it's", '"q"', "$(x)", "#(y)", "`z`", ";", "\\", "%d"]
    parts, left = [], size
    while left > 12:
        parts.append(rng.choice(words) + rng.choice([" ", " ", " ", "\n"]))
        left -= len(parts[-1].encode())
    return "".join(parts) + "x" * left


KICKOFFS = {"one": "x", "hostile": HOSTILE, "page": long(20_000), "edge": long(119_000)}


def declare(p: Project, name: str, backend: str, text: str) -> str:
    (p.root / f"{name}.md").write_text(text, encoding="utf-8")
    return (
        f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "{backend}"\nprompt_file = "{name}.md"\n'
    )


def kept(p: Project, name: str) -> str:
    return (p.log_dir / "state" / f"kickoff-{p.prefix}{name}.txt").read_bytes().decode()


def heard(p: Project, name: str) -> list[str]:
    return [m["text"] for m in p.received(name)]


def test_by_argument(make):
    """R046, R129, T26: and too long for an argument, as a pointer to the exact file."""
    p = make()
    big = long(1 << 20)
    texts = KICKOFFS | {"big": big}
    p.write("".join(declare(p, n, "scripted", t) for n, t in texts.items()))
    p.agents("up", *texts)
    for name, text in texts.items():
        assert kept(p, name) == text, name
        until(lambda n=name: heard(p, n))
        pointer = f"Read {p.log_dir}/state/kickoff-{p.prefix}{name}.txt and follow it."
        assert heard(p, name) == [pointer if name == "big" else text], name
    assert not (p.root / "evil").exists()


def test_by_file(make):
    """R048, R049."""
    p = make()
    texts = KICKOFFS | {"big": long(1 << 20)}
    head = (
        '[backend.copier]\nprompt_delivery = "exec"\nbin = "cp {kickoff} got-{session} && exec sleep 1000"\n'
    )
    p.write(head + "".join(declare(p, n, "copier", t) for n, t in texts.items()))
    p.agents("up", *texts)
    for name, text in texts.items():
        got = p.root / f"got-{p.prefix}{name}"
        until(lambda g=got, t=text: g.exists() and g.stat().st_size == len(t.encode()))
        assert got.read_bytes().decode() == text == kept(p, name), name


def test_by_typing(make):
    """R047, I11, T26: one message, submitted once, nothing added and nothing lost."""
    p = make()
    texts = KICKOFFS | {"big": long(1 << 20)}
    p.write("".join(declare(p, n, "scripted-tui", t) for n, t in texts.items()))
    p.agents("up", code=None)
    for name, text in texts.items():
        assert kept(p, name) == text, name
        until(lambda n=name: heard(p, n), 90)
        pointer = f"Read {p.log_dir}/state/kickoff-{p.prefix}{name}.txt and follow it."
        assert heard(p, name) == [pointer if name == "big" else text], name
    until(lambda: len(p.events("message.confirmed")) == len(texts), 60)
    assert not (p.root / "evil").exists()
