"""The brokers: which rules each asks in which order, and which sites it chooses. Pure.

Imports the floors below it. Start at `choosing.py`, the one door.
"""
