"""The processes of one installation on one machine: the embedded PostgreSQL, the supervisor and its children.

Most of it runs before Django is there, so it imports no Django. Start at `launch.py`.
"""
