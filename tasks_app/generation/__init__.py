"""From a task that is ready to the rows of its jobs: read, plan (`rules/`, pure), build, store.

`generation_pass.py` is what a pass knows, `turn_facts.py` what a task's turn knows, `TurnResult` what comes of it.
Imports the floors below it. Start at `task_turns.py`, then `turn_steps.py`.
"""
