"""The only room that touches tmux, processes, files, git and the clock."""
