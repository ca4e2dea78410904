"""Alerts: people are told of items of attention by mail, to a webhook, or in the feed, as rules in the admin say.

`due_alerts` finds what is to be told and stores it, `alert_ways` sends it; `rules` choose and word. Imports the floors
below it. Start at `rules/telling.py`.
"""
