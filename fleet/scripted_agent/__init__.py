"""A real full-screen agent driven by a script: the whole product, no key needed."""
