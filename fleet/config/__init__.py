"""agents.toml in, a frozen Fleet out; every error names its file, line and key."""
