"""What a submitted task may say, the split rule, the commands on a task and their parameters. Pure.

Imports `domain`. Start at `schema.py`; `keys.py` is the table of all parameters.
"""
