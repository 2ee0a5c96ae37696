"""Ratios within one run; `python bench/run.py`."""
