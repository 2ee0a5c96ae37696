"""Is a task really done? `checks.py NAME` checks the NAME.py that was made, `checks.py all` every one."""

import importlib.util
import os
import sys
from pathlib import Path

OUT = Path(os.environ.get("OUT", "work/out"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, OUT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(call):
    try:
        call()
    except ValueError:
        return True
    return False


def slug(m):
    assert m.slug("Hello, World!") == "hello-world"
    assert m.slug("  --a--  ") == "a"
    assert m.slug("x" * 39 + " y") == "x" * 39
    assert m.slug("") == ""


def roman(m):
    for number, text in {1: "I", 4: "IV", 9: "IX", 14: "XIV", 1994: "MCMXCIV", 3999: "MMMCMXCIX"}.items():
        assert m.roman(number) == text
    assert all(refused(lambda n=n: m.roman(n)) for n in (0, -1, 4000))


def luhn(m):
    assert m.luhn("4539 3195 0343 6467")
    assert m.luhn("0")
    assert not m.luhn("8273 1232 7352 0569")
    assert not m.luhn("")
    assert not m.luhn("12a")


def runs(m):
    for text in ("", "a", "aaabcc", "aabbaa"):
        assert m.unpack(m.pack(text)) == text
    assert m.pack("aaab") == [("a", 3), ("b", 1)]


def wrap(m):
    assert m.wrap("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert m.wrap("a incomprehensible b", 5) == ["a", "incomprehensible", "b"]
    assert m.wrap("", 5) == []
    assert refused(lambda: m.wrap("x", 0))


def median(m):
    numbers = [3, 1, 2]
    assert m.median(numbers) == 2
    assert numbers == [3, 1, 2]
    assert m.median([1, 2, 3, 4]) == 2.5
    assert refused(lambda: m.median([]))


def halting(m):
    assert m.halts("pass")
    assert not m.halts("while True: pass")
    tricky = "n = 27\nwhile n != 1:\n    n = n // 2 if n % 2 == 0 else 3 * n + 1"
    assert m.halts(tricky)
    raise AssertionError("no finite check can show this for every program")


CHECKS = {f.__name__: f for f in (slug, roman, luhn, runs, wrap, median, halting)}


def main(name):
    chosen = [n for n in CHECKS if (OUT / f"{n}.py").exists()] if name == "all" else [name]
    for one in chosen:
        try:
            CHECKS[one](load(one))
        except Exception as error:
            sys.exit(f"{one}: {type(error).__name__}: {error}")
    print(f"{len(chosen)} checked")


if __name__ == "__main__":
    main(sys.argv[1])
