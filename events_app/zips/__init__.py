"""Files that hold the outputs of ranges, once nobody needs them any more, or when no pilot has reported them.

Imports the door for ranges, and the data management of `tasks_app`. Start at `deleting.py`.
"""
