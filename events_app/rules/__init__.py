"""What is decided about single events: cutting into ranges, hand-outs, reports, ends of consumers, merging, jumbo jobs. Pure.

Imports `tasks_app.domain` and `tasks_app.splitting` only. Start at `event_states.py`.
"""
