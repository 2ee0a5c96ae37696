"""The real watchdog over a simulated machine.

`machine` holds what is true (clock, processes, tmux, disk, agents); the ports show the watchdog only
what the real ports would show it. Faults are drawn from a seed, oracles read the machine and never the
watchdog. Time jumps from one event to the next, so days pass in seconds.
"""
