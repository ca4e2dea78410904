"""The rules by which brokers leave sites out, and how they are asked. Pure.

Imports the floors below it. Start at `asking.py`; the order of the rules stands in `brokers`.
"""
