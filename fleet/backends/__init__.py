"""Profiles of the agent CLIs, and the readers that turn what they show into facts."""
