"""One rule, one file, one table test. Each says what it would do and why."""
