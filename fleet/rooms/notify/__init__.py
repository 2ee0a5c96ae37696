"""Telling somebody: what is news (notices), when it is told (notifier), and how it gets there (targets)."""
