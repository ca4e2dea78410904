"""From a task that is ready to the rows of its jobs: throttle, broker, splitting, storing.

Imports the floors below it. Start at `work.py`, one task's turn.
"""
