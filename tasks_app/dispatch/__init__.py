"""The server's side of pilots and harvesters: hands out jobs and stores reports.

Imports the floors below it. Start at `handing_out.py` and `reports.py`.
"""
