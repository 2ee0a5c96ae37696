"""What the plans ask for, as tests."""
