"""Notifications: what is news (notices), when it is sent (notifier), and how (targets)."""
