"""What the brokers decided, kept and counted.

Imports the floors below it. Start at `records.py`.
"""
