"""The CLIs' own records: usage figures and readable logs.

Each CLI writes down what it did. The reader in its folder of `backends` turns those files into two things:
usage, poured into a Ledger that counts every message once, and Entries a person can read.
"""
