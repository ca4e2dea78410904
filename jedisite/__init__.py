"""The frame of the installation: its processes, database, accounts, agents and pages. It knows no table of the domain.

Rooms, from the ground up: vocabulary, database, processes, server, identity, agents, web, admin, management. Start at
`settings.py` and `urls.py`; `refusals.py` is the registry of refusal codes, `audit.py` the audit trail.
"""
