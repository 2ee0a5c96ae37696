"""What went wrong in a way that a person can act on. `fleet/cli/main.py` prints it as it is."""

from __future__ import annotations


class Fault(Exception):
    """Its text says what failed and what to do. Any other exception is a fault of this program."""

    code = 1  # the exit code of a verb that ends with it
    hint = ""

    def lines(self) -> list[str]:
        """All that is to be said, one line for each thing that is wrong."""
        return [str(self)]
