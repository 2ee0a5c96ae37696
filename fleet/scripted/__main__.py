"""`python -m fleet.scripted [flags] [KICKOFF]`."""

from __future__ import annotations

import sys

from fleet.scripted.agent import main

sys.exit(main(sys.argv[1:]))
