"""Why: the answers for a task, a job, a site and a share, put together from what the agents have left behind.

Imports the floors below it. Start at `why_task.py`; `queries.py` reads what the gates look at, `rules/gates.py` has the gates
in their order.
"""
