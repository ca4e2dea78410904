"""What is decided about single events: cutting into ranges, hand-outs, reports, ends of consumers, merging, jumbo jobs. Pure.

Imports rooms of `tasks_app` that are pure, too, and nothing else. Start at `event_states.py`.
"""
