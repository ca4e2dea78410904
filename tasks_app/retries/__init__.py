"""What failed jobs change: their files, their memory, their task.

Imports the floors below it. Start at `retrying.py`; `rules/` decides.
"""
