"""tmux: what we say to it, what it answers, and two ways of asking."""
