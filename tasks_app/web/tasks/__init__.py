"""Pages on tasks: the list, one task with its tabs, its timeline, and commands to it."""
