"""Agents: short bounded passes that django-q2 runs, their orders, their state, and the tasks that give them trouble.

Imports the floors below it. Start at `registry.py`, in which agents declare themselves, and `passes.py`, which runs them.
"""
