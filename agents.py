#!/usr/bin/env python3
"""The driver and the watchdog: `agents.py up`, `status`, `down`, `--help`.

Only a launcher: it checks the Python, finds its own directory and hands over to fleet.verbs.
The text must parse under any Python since 2.7, so that an old one gets a sentence, not a SyntaxError.
"""

import os
import sys

OLDEST = (3, 11)


def refuse():
    """Say which Python this is, which one is needed, and which of this machine's would do."""
    import subprocess

    advice = "install Python 3.11 or newer and run it with that"
    finder = os.path.join(os.path.dirname(os.path.realpath(__file__)), "fleet", "find-python.sh")
    try:
        asked = subprocess.Popen(["sh", finder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        found = asked.communicate()[0].decode("utf-8", "replace").strip()
    except OSError:
        found = ""
    if found:
        advice = "run it with %s" % found
    sys.stderr.write(
        "error: %s needs Python 3.11 or newer, but %s is Python %d.%d: %s\n"
        % ((os.path.basename(__file__), sys.executable) + tuple(sys.version_info[:2]) + (advice,))
    )
    sys.exit(2)


if sys.version_info < OLDEST:
    refuse()

# A link to this file, a submodule and any working directory all lead to the same engine.
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [HERE] + [entry for entry in sys.path if entry not in ("", HERE)]

if __name__ == "__main__":
    theirs = os.umask(0o077)  # before anything of ours is written, bytecode included
    try:
        from fleet.__main__ import agents
    except KeyboardInterrupt:
        os._exit(130)
    agents(theirs)
