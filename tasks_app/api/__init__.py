"""The calls: `v2`, the resources of this site; `panda`, PanDA's own interface.

A view translates and calls a stage or a command; it decides nothing.
"""
