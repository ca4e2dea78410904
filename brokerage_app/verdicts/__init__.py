"""Decisions of the brokers, stored and counted.

Imports the floors below it. Start at `records.py`.
"""
