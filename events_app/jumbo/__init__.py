"""Jumbo jobs, which take ranges of any jobset of their task: when a task has them, how they are made, who waits for them.

Imports `consumers`, `lifecycle` and `rules` of this app, the brokers' view in `tasks_app.generation`. Start at `jumbo_turns.py`.
"""
