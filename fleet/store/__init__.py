"""What survives: whole documents, appended events."""
