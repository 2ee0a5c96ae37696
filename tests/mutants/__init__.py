"""The supervisor, broken on purpose in named ways, and for each way the one test that must notice."""
