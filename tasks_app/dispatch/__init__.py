"""The server's side of pilots and harvesters: jobs are handed out, reports are taken.

Imports the floors below it. Start at `handing_out.py` and `reports.py`.
"""
