"""Workflows after the DØ job definition: jobs of stages, lines and packages whose order follows from the names of their files.

It may import the stages of a task and the commands on tasks below it; the faces read it. `rules/` is pure: start with
`rules/definition.py` (the records) and `rules/implied_graph.py` (which package waits for which).
"""
