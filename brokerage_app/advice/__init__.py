"""What would let a blocked task run: decisions made again under other conditions. Pure.

Imports the floors below it. Start at `remedies.py` and `whatif.py`.
"""
