"""`python -m fleet.scripted_agent [flags] [KICKOFF]`."""

from __future__ import annotations

import sys

from fleet.scripted_agent.program import main

sys.exit(main(sys.argv[1:]))
