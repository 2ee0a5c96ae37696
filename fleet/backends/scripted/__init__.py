"""The scripted agent: `fleet/scripted_agent` is the program."""
