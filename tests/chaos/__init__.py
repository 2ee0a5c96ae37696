"""Real tmux, real faults, an observer with its own eyes, and a checker that reads its history."""
