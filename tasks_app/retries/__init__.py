"""What failed jobs change: their files, their memory, their task.

Imports the floors below it. Start at `apply_rules.py`; `rules/` decides.
"""
