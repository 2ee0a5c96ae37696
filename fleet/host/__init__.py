"""The machine, port by port: tmux, processes, disk, locks, git, children, http. Never the declaration."""
