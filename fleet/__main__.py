"""`python -m fleet VERB`: the way to start an installed engine without knowing where its scripts are."""

from __future__ import annotations

from fleet.start import agents

agents()
