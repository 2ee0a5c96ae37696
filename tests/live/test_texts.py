"""Whatever is sent to a real CLI arrives as text, once and exactly, or is refused with the reason.

AO_LIVE_TEXTS=200 AO_LIVE_SEED=7 for more, or others. What is checked is what the model server was asked.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crew import ENGINE, Crew
from drill import WAYS
from rig import installed

from tests.deadlines import patience
from tests.texts import texts

pytestmark = [pytest.mark.live, pytest.mark.slow]
MANY = int(os.environ.get("AO_LIVE_TEXTS", "24"))
SEED = int(os.environ.get("AO_LIVE_SEED", "1"))
NUMBER = re.compile(r"n\d{4}[nx]")
REFUSED = re.compile(r"^\S+ \(line \d+, character \d+\): ")  # what is wrong with it, and where
SHELL = "!touch ran-as-a-command"
STUCK = 3  # messages that were neither delivered nor refused: those after them wait just as long


@pytest.fixture
def crew(tmp_path):
    made = []

    def make(cli: str, backend: str = "", prompt: str = "begin the work") -> Crew:
        why = installed(cli)
        if why.startswith("no ") or not shutil.which("tmux"):
            pytest.skip(f"{cli}: {why if why.startswith('no ') else 'no tmux'}")
        made.append(Crew(cli, tmp_path, backend=backend, prompt=prompt).__enter__())
        return made[-1]

    yield make
    for one in made:
        one.__exit__()


def send(one: Crew, text: str, timeout: float = 0.0) -> tuple[bool, str]:
    """Through the real verb, by standard input: an argument cannot hold every text."""
    timeout = timeout or patience(60)
    done = subprocess.run(
        [sys.executable, str(ENGINE), "send", "a", "-", "--json", "--timeout", str(timeout)],
        cwd=one.root, env=one.env, input=text.encode("utf-8", "surrogatepass"), capture_output=True,
        timeout=timeout + patience(60), check=False,
    )  # fmt: skip
    said = done.stdout.decode() + done.stderr.decode()
    assert "Traceback" not in said, said
    receipt = json.loads(done.stdout)["receipts"]["a"]
    assert receipt["ok"] == (done.returncode == 0)
    return receipt["ok"], receipt["text"]


def form(text: str) -> str:
    """The text itself. A CLI may choose line ends, outer blanks and composed letters, nothing else."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").strip())


def all_heard(one: Crew, texts: list[str]) -> list[str]:
    """Everything the model was asked, once it was asked all of these, or after a while."""

    def heard() -> list[str]:
        return [words for row in one.raw() for words in row]

    with suppress(AssertionError):  # what is missing is told text by text
        one.until(lambda: {form(text) for text in texts} <= {form(words) for words in heard()}, "all heard")
    one.settles(240)
    return heard()


@pytest.mark.parametrize("cli", list(WAYS))
def test_every_text_arrives_once_and_exactly_or_is_refused_and_none_is_in_the_way_of_the_next(crew, cli):
    """I11, I12."""
    one = crew(cli)
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    sent, refused, wrong = {}, {}, []
    began = time.monotonic()
    for n, text in enumerate(texts(SEED, MANY)):
        if n % 10 == 9:  # now and then it is at work when it is written to
            one.server.script.control({"queue": [{"ttfb": 1.5, "text": "it takes a while"}]})
            slow = f"a slow one before n{n:04}x"
            ok, why = send(one, slow)
            assert ok, why
            sent[slow] = why
        ok, why = send(one, text)
        if not ok and not REFUSED.search(why):
            wrong.append(f"{text!r}: neither delivered nor refused: {why}")
            if len(wrong) == STUCK:
                break
        (sent if ok else refused)[text] = why
    heard = all_heard(one, list(sent))
    for text, why in sent.items():
        found = [words for words in heard if form(words) == form(text)]
        if len(found) != 1:
            near = [words for words in heard if NUMBER.findall(text)[0] in words]
            wrong.append(f"{text!r}: {why}: arrived {len(found)} times; near: {near!r}")
    for text, why in refused.items():
        if any(NUMBER.findall(text)[0] in words for words in heard):
            wrong.append(f"{text!r}: not delivered ({why}), and it arrived")
    took = time.monotonic() - began
    counts = f"{len(sent)} delivered, {len(refused)} refused, {len(wrong)} wrong"
    print(f"\n{cli}, seed {SEED}, {took:.0f} s: {counts}")
    for why, times in Counter(REFUSED.sub("", why) for why in refused.values()).most_common():
        print(f"  {times} refused: {why}")
    for why, times in Counter(sent.values()).most_common():
        print(f"  {times} delivered: {why}")
    assert not wrong, "\n".join(wrong)
    assert len(sent) > MANY / 2
    assert not one.events("agent.died")


@pytest.mark.parametrize(
    ("cli", "prompt"),
    [
        *itertools.product(["claude", "codex"], ["-x is no flag", "/compact is a word", SHELL]),
        ("opencode", SHELL),  # its prompt comes by its server, and it takes long to come up
    ],
)
def test_a_prompt_that_begins_like_a_flag_or_a_command_is_a_prompt(crew, cli, prompt):
    one = crew(cli, prompt=prompt)
    one.verb("up")
    one.until(one.prompts, "the model was asked something")
    asked = one.prompts()[0]["user"].strip()
    pointed = re.fullmatch(r"Read (\S+) and follow it\.", asked)  # one that cannot be said lies in a file
    assert (Path(pointed[1]).read_text() if pointed else asked) == prompt
    assert not list(one.root.rglob("ran-as-a-command"))


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_nothing_is_typed_into_a_composer_that_a_person_left_in_its_shell_mode(crew, cli):
    """I8."""
    one = crew(cli)
    one.verb("up")
    one.until(lambda: len(one.prompts("begin the work")) == 1, "the kickoff arrived")
    one.settles()
    one.tmux("send-keys", "-t", f"={one.prefix}a:", "!")
    one.until(lambda: re.search(r"^!", one.screen(), re.MULTILINE), "its shell mode")
    ok, why = send(one, "touch ran-as-a-command", timeout=5)
    assert not ok
    assert "commands" in why
    one.tmux("send-keys", "-t", f"={one.prefix}a:", "BSpace")
    ok, why = send(one, "now it is a message")
    assert ok, why
    one.until(lambda: one.prompts("now it is a message"), "it arrived")
    assert not list(one.root.rglob("ran-as-a-command"))
