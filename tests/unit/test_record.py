"""A record is a standard dataclass in everything but the price."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core import record

ROOT = Path(__file__).resolve().parents[2]


def declare(module, *, frozen):
    """The same class, once by the standard library and once by us."""
    made = []

    def fresh():
        made.append(1)
        return []

    @module.dataclass(frozen=frozen, slots=True)
    class Thing:
        """A thing."""

        name: str
        size: int = 3
        parts: list = module.field(default_factory=fresh)

        @property
        def label(self):
            return f"{self.name}/{self.size}"

    return Thing


Ours = {frozen: declare(record, frozen=frozen) for frozen in (False, True)}
Theirs = {frozen: declare(dataclasses, frozen=frozen) for frozen in (False, True)}


@record.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


arguments = st.tuples(st.text(max_size=3), st.integers(0, 2), st.lists(st.integers(), max_size=2))


@pytest.mark.parametrize("frozen", [False, True])
@given(one=arguments, two=arguments, given_count=st.integers(1, 3))
def test_it_builds_compares_and_shows_itself_as_the_standard_one(frozen, one, two, given_count):
    ours, theirs = Ours[frozen], Theirs[frozen]
    a, b = ours(*one[:given_count]), ours(*two[:given_count])
    c, d = theirs(*one[:given_count]), theirs(*two[:given_count])
    assert (a.name, a.size, a.parts, a.label) == (c.name, c.size, c.parts, c.label)
    assert (a == b) is (c == d)
    assert repr(a) == repr(c)
    assert a != c
    assert ours(name=one[0]) == ours(one[0])
    assert record.replace(a, size=9) == ours(a.name, 9, a.parts)


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_frozen_means_frozen_and_hashable(kind):
    thing = kind[True]("a", parts=())
    with pytest.raises(dataclasses.FrozenInstanceError):
        thing.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del thing.name
    assert hash(thing) == hash(kind[True]("a", parts=()))
    with pytest.raises(TypeError):
        hash(kind[False]("a"))


def test_a_record_is_its_own_class_however_it_was_made():
    @record.dataclass(frozen=True, slots=True)
    class Nothing:
        """No fields at all."""

    for made in (Point(1), record.replace(Point(1), y=2), record.replace(Theirs[True]("a"), size=2)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.size = 7
    assert (type(Point(1)), type(record.replace(Point(1)))) == (Point, Point)
    assert type(Nothing()) is type(record.replace(Nothing())) is Nothing
    with pytest.raises(AttributeError):
        record.replace(Point(1), nonsense=1)


@pytest.mark.parametrize("kind", [Ours, Theirs])
@pytest.mark.parametrize("frozen", [False, True])
def test_slots_defaults_and_mistakes(kind, frozen):
    cls = kind[frozen]
    assert cls.__slots__ == ("name", "size", "parts")
    assert cls.__match_args__ == ("name", "size", "parts")
    assert cls.__doc__ == "A thing."
    assert cls("a").parts is not cls("b").parts
    for wrong in (cls, lambda: cls("a", nonsense=1), lambda: cls("a", 1, [], 4)):
        with pytest.raises(TypeError):
            wrong()
    if not frozen:
        thing = cls("a")
        thing.size = 7
        assert thing.size == 7
        with pytest.raises(AttributeError):
            thing.other = 1


def test_the_standard_helpers_understand_it():
    thing = Ours[True]("a", 1, [2])
    assert dataclasses.is_dataclass(thing)
    assert dataclasses.asdict(thing) == {"name": "a", "size": 1, "parts": [2]}
    assert dataclasses.replace(thing, size=5) == record.replace(thing, size=5)
    mine, standard = dataclasses.fields(Ours[True]), dataclasses.fields(Theirs[True])
    assert [(f.name, f.type, f.default) for f in mine] == [(f.name, f.type, f.default) for f in standard]
    assert mine[2].default_factory() == []


def test_it_can_be_copied_pickled_and_matched():
    point = Point(1, 2)
    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("no match")


def test_a_class_without_slots_is_refused():
    with pytest.raises(TypeError, match="slots"):
        record.dataclass(slots=False)


def test_declaring_classes_brings_in_neither_dataclasses_nor_inspect():
    program = """
import sys
from fleet.core.record import dataclass, field, replace
@dataclass(frozen=True, slots=True)
class A:
    x: int = 1
assert replace(A(), x=2).x == 2 and A() == A() and hash(A())
print(*{"dataclasses", "inspect"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")
