"""Draws docs/fleet.svg: the live view of the demo fleet, at the moment a gate has found a mistake.

Run it as `python -m tools.picture`; it needs textual and takes half a minute.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import Any

PICTURE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "fleet.svg")
SIZE = (108, 32)
FONT = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'


def right_moment(app: Any) -> bool:
    """The second phase, a failed gate, and the builder mending what it found."""
    from fleet.extras.top import cells

    loop = app.last.facts["loop"] if app.last else None
    if loop is None or loop["id"] != "parse":
        return False
    failed = cells.gates_of(app.events, "parse")[:1] == ["failed"]
    builder = app.last.facts["agents"][0]
    return failed and builder["detail"] == "WORKING" and "ping" not in builder["reason"]


async def draw(config: str) -> str:
    """The picture, as soon as the moment has come."""
    from fleet import config as configs
    from fleet.extras.top.app import Top
    from fleet.host.clock import RealClock
    from fleet.verbs.top import RealFleet

    clock = RealClock()
    app = Top(RealFleet(configs.load(config), clock), clock.wall, tour=True)
    async with app.run_test(size=SIZE) as pilot:
        while not right_moment(app):
            await pilot.pause(0.05)
            app.look()
        return app.export_screenshot(title="agents.py top")


def self_contained(svg: str) -> str:
    """No font is fetched from anywhere."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("font-family: Fira Code, monospace", f"font-family: {FONT}")


def main() -> None:
    """Bring the demo up, draw, clean up."""
    from fleet.extras.demo import touring
    from fleet.host.clock import RealClock

    with touring(print, RealClock(), keep=False) as tour:
        tour.prefix = "calc-"
        tour.set_out()
        why = tour.up()
        if why:
            sys.exit(why)
        svg = self_contained(asyncio.run(draw(tour.config)))
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(svg)


if __name__ == "__main__":
    main()
