"""Times as programs and people write them, and the two clocks they are held against. Pure."""
