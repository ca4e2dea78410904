"""The agents of events: each claims, calls a stage and releases.

Imports all rooms below; what an agent decides stands in its stage.
"""
