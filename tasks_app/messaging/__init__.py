"""Messages of other systems, what they do, and mails to owners. What we say goes through `lifecycle/outbox.py`.

Imports the floors below it. Start at `inbox.py`.
"""
