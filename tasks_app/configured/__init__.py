"""Numbers and time-outs that an installation may set.

Imports `domain`, and the configuration of `brokerage_app`. Start at `timeout_table.py` and `timeout_limits.py`.
"""
