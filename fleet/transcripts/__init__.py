"""The CLIs' own records: usage figures and readable logs."""
