"""What queues, work queues and shares do now and did lately: sets of rows for pages and exports.

Imports the floors below it. Start at `site_use.py`.
"""
