"""Common parts of pages and calls: paging, problems, columns, exports, health, the schema, middleware.

Imports the floors below it, no table of the domain. Start at `problems.py` and `paging.py`.
"""
