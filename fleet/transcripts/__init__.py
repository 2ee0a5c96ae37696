"""The CLIs' own records: usage figures and readable logs.

Each CLI writes down what it did. One reader a CLI (claude, codex, opencode) turns those files into two
things: usage, poured into a Ledger that counts every message once, and Entries a person can read.
"""
