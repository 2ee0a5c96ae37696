"""A tmux fleet supervisor driven by one declarative TOML file."""

__version__ = "0.1.0"
