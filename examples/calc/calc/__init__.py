"""A calculator, built in phases."""
