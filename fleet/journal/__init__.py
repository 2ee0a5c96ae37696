"""What was decided and done, on disk, readable without asking anyone."""
