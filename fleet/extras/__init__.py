"""Optional capabilities over the same views and verbs; deleting one breaks nothing."""
