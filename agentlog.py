#!/usr/bin/env python3
"""Transcripts made readable: `agentlog.py follow-all`, `follow NAME`, `render FILE`.

Only a launcher, for the same engine as agents.py and with the same checks.
"""

import os
import sys

if __name__ == "__main__":
    theirs = os.umask(0o077)  # before anything of ours is written, bytecode included

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import agents  # noqa: F401  refuses an old Python and puts the engine first on the path

if __name__ == "__main__":
    try:
        from fleet.__main__ import agentlog
    except KeyboardInterrupt:
        os._exit(130)
    agentlog(theirs)
