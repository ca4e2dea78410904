"""Stores what refining found: a new task's datasets and templates, or what has changed of a task that runs again."""
