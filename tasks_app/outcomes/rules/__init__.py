"""How a task ends, and the sentence on it. Pure."""
