"""What the installation decides: work queues, global shares, throttles, and the parameters of the configuration. Pure.

Imports `vocabulary` and `formulas`. Start at `workqueues.py` and `shares.py`.
"""
