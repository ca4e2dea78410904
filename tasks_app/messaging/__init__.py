"""Messages of other systems, what they do, and mails to owners; rows of production systems. What we say goes through
`lifecycle/outbox.py`.

Imports the floors below it. Start at `inbox.py` and `production_systems.py`.
"""
