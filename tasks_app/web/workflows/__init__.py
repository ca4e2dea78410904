"""Pages of workflows: the list, one of them as a graph, its packages, the story of a line, and definitions before they run.

What packages do and may do stands in `tasks_app/workflows/`; here it is looked at, drawn and asked for.
"""
