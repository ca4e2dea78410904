"""Who is calling: accounts, tokens, OIDC, certificates, logins of devices, and the brake on guessing.

Imports the floors below it, no page and no agent. Start at `callers.py`.
"""
