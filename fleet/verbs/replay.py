"""Decide a recorded case again.

The watchdog keeps the case behind each action in <log_dir>/state/bundles/. Exits 1 when the rules
of this version decide otherwise than was recorded.

Example: agents.py replay .ao-state/state/bundles/000042-builder.json
"""

from __future__ import annotations

import argparse
import json

from fleet.core.agent.decide import judge
from fleet.core.case import Case
from fleet.core.codec import all_fields, from_plain
from fleet.core.trace import explained, trace
from fleet.core.views import row
from fleet.verbs.arguments import positional
from fleet.verbs.io import Fail, Io

GROUP = "look"
PLACE = "a file of state/bundles/ in log_dir"


ARGUMENTS = (positional("bundle", "a file from state/bundles/", metavar="BUNDLE"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Judge the bundle again. Exit 1 when the decision differs."""
    try:
        with open(args.bundle, encoding="utf-8") as file:
            body = json.load(file)
        case = from_plain(Case, body["case"])
    except OSError as error:
        raise Fail(f"{args.bundle}: {error.strerror}", hint=PLACE, code=2) from None
    except (ValueError, KeyError, TypeError) as error:
        raise Fail(f"{args.bundle} is not a recorded case: {error}", hint=PLACE, code=2) from None
    decision = judge(case)
    shown = decision.shown
    action = " ".join(type(effect).__name__ for effect in decision.effects)
    same = shown.rule == body["rule"] and action == body["action"]
    judged = all_fields(row(case.agent, case.seen, decision.memory, shown))
    judged["trace"] = trace(case, decision, decision.memory)
    facts = explained(case.agent, judged, case.now.wall) | {
        "recorded": {"rule": body["rule"], "action": body["action"], "reason": body["reason"]},
        "same": same,
    }
    if args.json:
        io.json(facts)
    else:
        io.print(f"recorded: {body['rule']}: {body['action']}: {body['reason']}")
        io.print(f"now:      {shown.rule}: {action}: {shown.reason}")
        io.print("the same" if same else "DIFFERENT")
    return 0 if same else 1
