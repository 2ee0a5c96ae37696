"""The agent CLIs, one folder each, and what turns what they show into facts.

A folder is all that the engine knows of a CLI. `profile.toml` is there always: how it starts, what its screen
shows. `signals.py` reads what the CLI reports by itself (`ADAPTERS`), `usage.py` the records it keeps
(`READER`). The modules beside the folders are the same for all of them and name none.
"""
