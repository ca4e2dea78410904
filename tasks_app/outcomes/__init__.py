"""Ends of jobs, booked on jobs, files, datasets and tasks; lost outputs; what becomes of children.

Imports the floors below it. Start at `final_reports.py` and `outcomes.py`.
"""
