"""The door through which tasks come: checks, names, sandboxes, secrets; and the rows that refining makes.

Imports the floors below it. Start at `submitting.py`.
"""
