"""What becomes of a request to the watchdog: a closed word that the verb reports as it is."""

from __future__ import annotations

from enum import StrEnum

from fleet.core.words import RequestKind


class RequestOutcome(StrEnum):
    """How a request ended. Only DONE is success."""

    DONE = "done"
    NO_SUCH_NAME = "no_such_name"  # the config in force names no agent or service so
    NOT_AN_AGENT = "not_an_agent"  # a service cannot be asked for this
    UNKNOWN_REQUEST = "unknown_request"  # of another version of the engine
    FAILED = "failed"  # it was tried
    NOT_IN_TIME = "not_in_time"  # the watchdog did not answer; the request was taken back


OF_SERVICES = frozenset({RequestKind.RESET, RequestKind.PARDON})  # what a service may be asked, too


def admitted(kind: str, *, agent: bool, service: bool) -> RequestOutcome:
    """DONE when it may be tried, else why not. `kind` comes from a file: another version may have asked."""
    if kind not in set(RequestKind):
        return RequestOutcome.UNKNOWN_REQUEST
    if not agent and not service:
        return RequestOutcome.NO_SUCH_NAME
    return RequestOutcome.DONE if agent or kind in OF_SERVICES else RequestOutcome.NOT_AN_AGENT


def refusal(outcome: RequestOutcome, kind: str, name: str) -> str:
    """The sentence to an outcome that is no success."""
    return {
        RequestOutcome.NO_SUCH_NAME: f"the config in force names no agent or service {name}",
        RequestOutcome.NOT_AN_AGENT: f"{name} is a service: {kind} is for agents",
        RequestOutcome.UNKNOWN_REQUEST: f"the watchdog does not know the request {kind!r}: restart it",
    }.get(outcome, str(outcome))
