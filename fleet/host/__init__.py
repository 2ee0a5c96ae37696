"""The machine, door by door: tmux, processes, disk, git, children, loopback, clock. Never the declaration."""
