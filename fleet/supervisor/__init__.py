"""The caretaker: look, decide, keep, act, show, sleep. The only room that knows all others."""
