"""Alerts: people are told of what needs attention, as the rules in the admin say."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.passes import renew_lease
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.alerts import due_alerts
from tasks_app.alerts.alert_ways import claim_alerts, send_alert

LIMIT = 20


@agent("alerts", every="30s", title="Tells people of problems by mail and webhook")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Store what is to be told, and send what is due, each at least once: a repetition has the same id."""
    moment = the_time(now)
    due_alerts.make(moment)
    claimed = claim_alerts(limit, moment)
    sent = 0
    for row in claimed:
        renew_lease()
        sent += send_alert(row, moment)
    return Pass(len(claimed), f"{plural(sent, 'alert')} sent" if claimed else "", more=len(claimed) == limit)
