"""The agent rules, one a file, and the table that orders them."""
