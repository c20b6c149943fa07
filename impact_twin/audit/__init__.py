"""Which scoring rule ran, and which cases were counted."""
