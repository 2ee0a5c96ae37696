"""Pages of servers on the loopback, fetched beside the loop: asking never waits, the answer comes later."""

from __future__ import annotations

from collections.abc import Callable

from fleet.ports import Clock, Http, Stranger

AGAIN_S = 1.0  # a page is asked for again after this long
TIMEOUT_S = 3.0
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
            answer = self._http.ask(address, key, None, TIMEOUT_S)
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
