"""Programs of users, with the standard library alone: the client of the resource API, and Ganga's interface upon it.

Imports nothing of the site. Start at `client.py`, which is one file to be copied, or at `ganga.py`, whose names scripts import;
`rules/` has what the site's view of subjobs decides by as well.
"""
