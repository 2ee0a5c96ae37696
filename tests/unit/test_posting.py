"""Messages by way of a CLI's own server: when, with which receipt, and never twice."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from fleet.backends.opencode import signals as opencode
from fleet.core.agent.receipts import receipts
from fleet.core.agent.typing import typing
from fleet.core.case import ProcView
from fleet.core.effects import Paste, Post
from fleet.core.seen import Posted
from fleet.core.words import MessageState, Outcome, PingAbout
from fleet.host.clock import RealClock
from fleet.host.http import Loopback
from fleet.ports import Reply
from fleet.supervisor.cli_servers import Letter, Mail
from fleet.supervisor.perform import Performer
from tests.deadlines import patience
from tests.records import replace
from tests.unit.cases import BACKEND, NOW, PANE, READY, REF, case, message, reading, seen

SERVER = "http://127.0.0.1:4096"
BY_SERVER = replace(
    BACKEND, message_delivery="server", signals=("server",), queues_input=True, server_key_env="KEY"
)
RUNS = replace(READY, run=replace(READY.run, server=SERVER, conversation="ses_1"))
WAITING = replace(RUNS, outbox=(message(),))
OPEN = {"mailbox": True}


def decide(memory, **more):
    return typing(case(memory, backend=BY_SERVER, seen=seen(**more)))


def flying(**more):
    sent = replace(
        message(),
        status=MessageState.SUBMITTED,
        posted=True,
        run=REF.run,
        enters=1,
        at=NOW.steady - 1,
        at_wall=NOW.wall - 1,
    )
    return replace(RUNS, outbox=(replace(sent, **more),))


def answered(memory, outcome=None, **more):
    told = (("send-1", outcome),) if outcome else ()
    return receipts(case(memory, backend=BY_SERVER, seen=seen(posted=told, **OPEN, **more)))


# --- when -------------------------------------------------------------------------------------------------


def test_with_a_server_that_answers_a_message_is_posted_and_on_record_before_it_goes():
    """I11, I20."""
    verdict = decide(WAITING, **OPEN)
    assert verdict.action == Post("a", REF, "send-1", SERVER, "ses_1", "post send send-1", BY_SERVER)
    (kept,) = verdict.memory.outbox
    assert (kept.status, kept.posted, kept.at_wall, kept.run) == (
        MessageState.SUBMITTED,
        True,
        NOW.wall,
        REF.run,
    )
    assert verdict.memory.typed[-1] == NOW.steady  # our own words are counted, however they go


@pytest.mark.parametrize(
    "look",
    [
        {"reading": reading("idle", draft="a person's half sentence")},
        {"pane": PANE._replace(in_mode=True)},
        {"pane": PANE._replace(typed_at=NOW.wall - 1)},
    ],
    ids=["a-draft", "copy-mode", "somebody-types"],
)
def test_who_has_the_composer_for_themselves_is_not_in_its_way(look):
    """I12: nothing of theirs is touched."""
    assert isinstance(decide(WAITING, **OPEN, **look).action, Post)


@pytest.mark.parametrize(
    ("state", "look"),
    [
        ("asking", {"reading": reading("asking", dialog="permission")}),
        ("unknown", {"reading": reading("unknown")}),
        ("idle", {"proc": ProcView(expected=False, shell_only=True)}),
        ("idle", {"pane": PANE._replace(dead=True)}),
    ],
    ids=["asking", "unknown", "a-shell", "dead"],
)
def test_an_agent_that_asks_or_cannot_be_read_is_not_written_to_either_way(state, look):
    """I8, I14."""
    assert decide(replace(WAITING, state=state), **OPEN, **look).action is None


@pytest.mark.parametrize(
    ("backend", "memory", "look"),
    [
        (replace(BY_SERVER, message_delivery="keys"), WAITING, OPEN),
        (BY_SERVER, replace(WAITING, run=replace(WAITING.run, conversation="")), OPEN),
        (BY_SERVER, replace(WAITING, run=replace(WAITING.run, server="")), OPEN),
        (BY_SERVER, replace(RUNS, outbox=(replace(message(), tries=1),)), OPEN),
        (BY_SERVER, replace(RUNS, outbox=(replace(message(), queued=NOW.steady - 9),)), {}),
    ],
    ids=["not-its-way", "no-conversation", "no-server", "refused-before", "never-heard"],
)
def test_keys_remain_where_there_is_no_server_to_write_to(backend, memory, look):
    assert isinstance(typing(case(memory, backend=backend, seen=seen(**look))).action, Paste)


def test_a_server_not_heard_yet_is_waited_for_a_moment():
    verdict = decide(WAITING)
    assert verdict.action is None
    assert "waits for a word of its server" in verdict.reason


def test_nothing_else_is_begun_while_one_is_on_its_way():
    """Order."""
    memory = flying()
    memory = replace(
        memory, outbox=(*memory.outbox, replace(message("ping", about=PingAbout.CLAIM), id="ping-2"))
    )
    assert decide(memory, **OPEN) is None


# --- with which receipt ------------------------------------------------------------------------------------


def test_what_the_server_has_on_record_is_confirmed():
    (done,) = answered(flying(), Posted.TAKEN).finished
    assert (done.status, done.why) == (MessageState.CONFIRMED, "its server has it")


def test_what_the_cli_itself_reported_is_confirmed_too():
    look = {"prompts": ((NOW.wall, message().text),)}
    assert answered(flying(), None, **look).finished[0].status is MessageState.CONFIRMED


def test_on_its_way_it_is_waited_for_and_other_rules_may_act():
    verdict = answered(flying(), Posted.UNDERWAY)
    assert (verdict.action, verdict.hold, verdict.finished) == (None, False, ())


def test_what_was_refused_is_typed_instead():
    verdict = answered(flying(), Posted.REFUSED)
    (back,) = verdict.memory.outbox
    assert (back.status, back.posted, back.tries) == (MessageState.QUEUED, False, 1)


def test_a_lost_answer_is_asked_about_again_with_the_same_name_and_never_typed():
    """I11."""
    memory = flying(at=NOW.steady - 5)
    verdict = answered(memory, Posted.UNSURE)
    assert isinstance(verdict.action, Post)
    (kept,) = verdict.memory.outbox
    assert (kept.at_wall, kept.enters) == (memory.outbox[0].at_wall, 2)
    assert answered(flying(), Posted.UNSURE).action is None  # at once would be too soon


def test_a_watchdog_that_knows_only_the_record_looks_it_up():
    """I20: a predecessor may have died before or after it went."""
    verdict = answered(flying())
    assert isinstance(verdict.action, Post)
    assert verdict.memory.outbox[0].enters == 2


def test_a_server_that_never_says_is_given_up_on_and_told_as_not_confirmed():
    (done,) = answered(flying(enters=5, at=NOW.steady - 5), Posted.UNSURE).finished
    assert done.status is MessageState.FAILED
    assert "not confirmed" in done.why


def test_a_persons_words_to_a_run_that_ended_are_not_said_twice():
    verdict = answered(flying(), Posted.UNSURE, pane=PANE._replace(dead=True))
    assert verdict.finished[0].status is MessageState.FAILED


# --- the server itself --------------------------------------------------------------------------------------


class Opencode(BaseHTTPRequestHandler):
    """As much of its server as takes letters. `moods` says what becomes of the next posts."""

    def _authorised(self) -> bool:
        if self.headers.get("authorization") == "Basic b3BlbmNvZGU6c2VzYW1l":
            return True
        self.send_response(401)
        self.end_headers()
        return False

    def do_GET(self):
        found = self.path.rpartition("/")[2] in self.server.kept
        if self._authorised():
            self.send_response(200 if found else 404)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        mood = self.server.moods.pop(0) if self.server.moods else "takes"
        if not self._authorised():
            return
        self.server.posts += 1
        if mood in {"takes", "takes and hangs up"}:
            self.server.kept.setdefault(body["messageID"], []).append(body["parts"][0]["text"])
        if mood in {"takes and hangs up", "hangs up"}:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response({"takes": 204, "refuses": 400, "breaks": 500}[mood])
        self.end_headers()

    def log_message(self, *_):
        """Quiet."""


@contextmanager
def server(*moods):
    with ThreadingHTTPServer(("127.0.0.1", 0), Opencode) as one:
        one.kept, one.moods, one.posts = {}, list(moods), 0
        thread = threading.Thread(target=one.serve_forever, daemon=True)
        thread.start()
        try:
            yield one, f"http://127.0.0.1:{one.server_address[1]}"
        finally:
            one.shutdown()
            thread.join()


def carried(mail: Mail, letter: Letter) -> Posted:
    mail.send(letter)
    end = time.monotonic() + patience(30)
    while (outcome := dict(mail.outcomes([letter.id]))[letter.id]) is Posted.UNDERWAY:
        assert time.monotonic() < end
        time.sleep(0.01)
    return outcome


def to(address: str, **more) -> Letter:
    send, body, look = opencode.letter(address, "ses_1", "msg_1", "two\nlines")
    return replace(Letter("send-1", send, body, look, "opencode:sesame"), **more)


@pytest.mark.parametrize(
    ("mood", "outcome", "kept"),
    [
        ("takes", Posted.TAKEN, ["two\nlines"]),
        ("refuses", Posted.REFUSED, None),
        ("breaks", Posted.UNSURE, None),
        ("hangs up", Posted.UNSURE, None),
        ("takes and hangs up", Posted.UNSURE, ["two\nlines"]),
    ],
)
def test_only_what_is_on_the_servers_record_counts_as_taken(mood, outcome, kept):
    with server(mood) as (one, address):
        assert carried(Mail(Loopback(), RealClock()), to(address)) is outcome
        assert one.kept.get("msg_1") == kept


@pytest.mark.parametrize("mood", ["takes and hangs up", "hangs up", "breaks"])
def test_carried_again_it_arrives_exactly_once_whatever_became_of_the_first(mood):
    """I11."""
    with server(mood) as (one, address):
        mail = Mail(Loopback(), RealClock())
        carried(mail, to(address))
        assert carried(mail, to(address, again=True)) is Posted.TAKEN
        assert one.kept == {"msg_1": ["two\nlines"]}


def test_nobody_at_the_door_and_a_wrong_password_are_refusals():
    nowhere = f"http://127.0.0.1:{Loopback().free_port()}"
    assert carried(Mail(Loopback(), RealClock()), to(nowhere)) is Posted.REFUSED
    with server() as (one, address):
        assert carried(Mail(Loopback(), RealClock()), to(address, key="wrong")) is Posted.REFUSED
        assert one.kept == {}


def test_two_do_not_carry_the_same_letter_at_once():
    gate, asked = threading.Event(), []

    def slow(address, *_):
        asked.append(address)
        gate.wait(10)
        return Reply(200, b"{}", json=True)

    mail = Mail(SimpleNamespace(ask=slow, beside=Loopback().beside), RealClock())
    mail.send(to(SERVER))
    mail.send(to(SERVER))
    gate.set()
    end = time.monotonic() + patience(10)
    while dict(mail.outcomes(["send-1"]))["send-1"] is Posted.UNDERWAY and time.monotonic() < end:
        time.sleep(0.01)
    assert asked == [to(SERVER).send, to(SERVER).look]


def test_only_this_machine_is_ever_spoken_to():
    with pytest.raises(OSError, match="not on this machine"):
        Loopback().ask("http://example.com/session", "", None, 1.0)


def test_a_name_follows_from_the_message_alone_and_sorts_by_its_time():
    one = opencode.message_id("send-1", 1794824801.049)
    assert one == opencode.message_id("send-1", 1794824801.049)
    assert one.startswith("msg_1e3e50b19001")  # as opencode itself names what came at that moment
    assert len(one) == len("msg_1e3e50b19001oZ9JIdwgCxtotJ")
    assert one != opencode.message_id("send-2", 1794824801.049)
    assert one < opencode.message_id("send-0", 1794824801.051)


# --- the act ------------------------------------------------------------------------------------------------


class Office:
    """As much of a world, a house and its records as a post needs."""

    def __init__(self) -> None:
        self.disk = self.host = self.events = self
        self.environ = {"KEY": "the user's own"}
        self.sent, self.record = [], replace(RUNS.run, id=REF.run)
        self.point = lambda _name: None

    def send(self, letter):
        self.sent.append(letter)

    def read(self, path, _cap=0):
        assert path == "/state/key-p-a"
        return b"sesame\n"

    def path(self, name):
        return f"/state/{name}"

    def run(self, _session):
        return self.record

    def begin(self, _effects):
        """Announced."""


POST = Post("a", REF, "send-1", SERVER, "ses_1", "post", BY_SERVER)


def test_the_act_writes_to_the_run_that_was_meant_with_that_runs_password():
    office = Office()
    sent = flying().outbox[0]
    assert Performer(office, office, office, office).act(POST, sent).ok
    (letter,) = office.sent
    assert (letter.key, letter.again) == ("opencode:sesame", False)
    assert json.loads(letter.body)["parts"] == [{"type": "text", "text": message().text}]
    assert opencode.message_id("send-1", sent.at_wall) in letter.look
    Performer(office, office, office, office).act(POST, replace(sent, enters=2))
    assert office.sent[1].again
    office.record = replace(office.record, server="")  # an address from agents.toml
    Performer(office, office, office, office).act(POST, sent)
    assert office.sent[2].key == "opencode:the user's own"


def test_another_run_gets_nothing():
    """I8."""
    office = Office()
    office.record = replace(office.record, id="another")
    done = Performer(office, office, office, office).act(POST, flying().outbox[0])
    assert (done.outcome, office.sent) == (Outcome.STALE, [])
