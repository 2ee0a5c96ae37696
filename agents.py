#!/usr/bin/env python3
"""The driver and the watchdog: `agents.py up`, `status`, `down`, `--help`.

Only a launcher: it checks the Python, finds its own directory and hands over to fleet.cli.
The text must parse under any Python since 2.7, so that an old one gets a sentence, not a SyntaxError.
"""

import os
import sys

OLDEST = (3, 11)


def refuse():
    """Say which Python this is, which one is needed, and which of this machine's would do."""
    names = ["python3.%d" % minor for minor in range(19, OLDEST[1] - 1, -1)]
    folders = os.environ.get("PATH", "").split(os.pathsep)
    newer = [name for name in names if any(os.access(os.path.join(f, name), os.X_OK) for f in folders)]
    advice = "run it with %s" % newer[0] if newer else "install Python 3.11 or newer and run it with that"
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
    import gc

    gc.set_threshold(50000)  # most verbs end before there is anything to collect
    try:
        from fleet.cli.main import main

        code = main(sys.argv[1:])
    except KeyboardInterrupt:  # while still loading
        code = 130
    # All is written and closed by now; taking the interpreter apart as well would be a tenth of `status`.
    os._exit(code)
