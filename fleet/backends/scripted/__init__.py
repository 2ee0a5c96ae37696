"""The scripted agent: `fleet/scripted` is the program."""
