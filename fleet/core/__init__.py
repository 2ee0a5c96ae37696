"""The pure room: what was declared, what was seen, what must be done. No I/O, no clock."""
