"""PanDA's calls on ranges of events, v1 and legacy: parameters in, the shapes that pilots, harvester and clients read out.

What they do stands in `events_app.dispatch`. Start at `range_calls.py`.
"""
