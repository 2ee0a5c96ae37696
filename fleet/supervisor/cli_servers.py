"""Messages to the servers of CLIs and pages from them, in threads: the tick never waits for them.

A letter has a name that the server keeps it under. The thread that posts it asks for that name first if it
may be there already, and always afterwards: the server's own record is the receipt, not its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fleet.core.seen import Posted
from fleet.ports import Clock, Http, Stranger

TIMEOUT_S = 5.0
LOOKS = 20  # for a letter that was accepted and is not on record yet
LOOK_S = 0.25
KEPT = 200  # outcomes that are remembered
_OK, _MOVED, _GONE, _FAULT = 200, 300, 404, 500


class Letter(NamedTuple):
    """One message, ready for one server."""

    id: str  # of the message in its outbox
    send: str  # the address to post to ...
    body: bytes
    look: str  # ... and the one at which it can be looked up afterwards
    key: str = ""
    again: bool = False  # it may have been posted before


class Mail:
    """One for the fleet."""

    def __init__(self, http: Http, clock: Clock) -> None:
        self._http, self._clock = http, clock
        self._outcomes: dict[str, Posted] = {}

    def send(self, letter: Letter) -> None:
        """Post it, unless a thread is already doing so."""
        if self._outcomes.get(letter.id) is Posted.UNDERWAY:
            return
        while len(self._outcomes) >= KEPT:
            self._outcomes.pop(next(iter(self._outcomes)))
        self._outcomes[letter.id] = Posted.UNDERWAY
        self._http.beside("letter", lambda: self._carry(letter))

    def outcomes(self, ids: Iterable[str]) -> tuple[tuple[str, Posted], ...]:
        """What became of these; one that this process has not posted is left out."""
        return tuple((name, self._outcomes[name]) for name in ids if name in self._outcomes)

    def _carry(self, letter: Letter) -> None:
        try:
            outcome = self._deliver(letter)
        except OSError:
            outcome = Posted.UNSURE
        self._outcomes[letter.id] = outcome

    def _deliver(self, letter: Letter) -> Posted:
        if letter.again and self._known(letter):
            return Posted.TAKEN
        try:
            said = self._http.ask(letter.send, letter.key, letter.body, TIMEOUT_S).status
        except Stranger:  # it was not sent; only an earlier carrier could have
            return Posted.UNSURE if letter.again else Posted.REFUSED
        if said == 0 or _MOVED <= said < _FAULT:
            return Posted.REFUSED
        return self._recorded(letter, LOOKS if said < _MOVED else 1)  # a fault may have come half way

    def _recorded(self, letter: Letter, looks: int) -> Posted:
        for n in range(looks):
            if self._known(letter):
                return Posted.TAKEN
            if n + 1 < looks:
                self._clock.sleep(LOOK_S)
        return Posted.UNSURE

    def _known(self, letter: Letter) -> bool:
        """Is it on record? OSError when the server does not say."""
        answer = self._http.ask(letter.look, letter.key, None, TIMEOUT_S)
        if answer.status == _OK and answer.json:
            return True
        if answer.status == _GONE:
            return False
        raise OSError(f"{letter.look}: {answer.status}")


# --------------------------------------------------------------------------------------------------
# Pages of servers on the loopback, fetched beside the loop: asking never waits, the answer comes later.


AGAIN_S = 1.0  # a page is asked for again after this long
PAGE_TIMEOUT_S = 3.0
OLD_S = 10.0  # an answer older than this says nothing any more


class Pages:
    """One for the fleet."""

    def __init__(self, http: Http, clock: Clock) -> None:
        self._http, self._clock = http, clock
        self._answers: dict[str, tuple[float, bytes]] = {}
        self._asked: dict[str, float] = {}
        self._busy: set[str] = set()
        self.strangers: dict[str, str] = {}  # by address: why it was not spoken to
        self.ring: Callable[[], None] = lambda: None  # called when a page says something else than before

    def ask(self, address: str, key: str = "") -> tuple[float, bytes] | None:
        """The newest answer, if it is young enough; a new one is on its way."""
        now = self._clock.mono()
        if address not in self._busy and now - self._asked.get(address, -1e9) >= AGAIN_S:
            self._busy.add(address)
            self._asked[address] = now
            self._http.beside("page", lambda: self._fetch(address, key))
        answer = self._answers.get(address)
        return answer if answer is not None and abs(self._clock.wall() - answer[0]) < OLD_S else None

    def forget(self, server: str) -> None:
        """A run is over, and its server with it: nothing that was found out about it counts any more."""
        for known in (self._answers, self._asked, self.strangers):
            for address in [a for a in list(known) if a.startswith(f"{server}/")]:
                known.pop(address, None)

    def _fetch(self, address: str, key: str) -> None:
        try:
            answer = self._http.ask(address, key, None, PAGE_TIMEOUT_S)
            if answer.json:
                before = self._answers.get(address)
                self._answers[address] = (self._clock.wall(), answer.body)
                if before is None or before[1] != answer.body:
                    self.ring()  # at the next look of its own accord the answer would be too old
            else:
                self._answers.pop(address, None)  # a server that speaks of something else says nothing
            self.strangers.pop(address, None)
        except Stranger as fault:
            self._answers.pop(address, None)
            self.strangers[address] = str(fault)
        except OSError:
            self._answers.pop(address, None)  # no server, no word
            self.strangers.pop(address, None)
        finally:
            self._busy.discard(address)
