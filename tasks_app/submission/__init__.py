"""The door through which tasks and commands come: checks, names, sandboxes, secrets; and the rows that refining makes.

Imports the floors below it. Start at `submitting.py` and `command_queue.py`.
"""
