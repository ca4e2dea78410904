"""The agents of tasks: a file each, thin. It claims, calls a stage and releases.

Imports the floors below. `@agent` beside the function says its name and period: `git grep '@agent("adder"'` leads to the adder.
"""
