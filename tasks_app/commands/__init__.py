"""Commands and changes on tasks: each is a right, a change and an entry in the audit trail, for one task or many.

Imports the floors below it. Start at `handlers.py` and `bulk.py`.
"""
