"""What pilots ask and say of ranges: whose job it is, what it is handed, and what becomes of its reports.

Imports the door of the states of ranges, and `tasks_app`. Start at `handing_ranges.py` and `range_accounts.py`.
"""
