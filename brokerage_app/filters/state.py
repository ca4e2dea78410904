"""Rules on the state of a site."""

from __future__ import annotations

from brokerage_app import codes
from brokerage_app.case import Case
from brokerage_app.snapshot import BROKEROFF, ONLINE, TEST, SiteView
from brokerage_app.verdict import Skip


def online(case: Case, site: SiteView) -> Skip | None:
    """Only online sites; test sites for label test; any status for work that is bound to the site."""
    if site.status == ONLINE:
        return None
    needs = case.needs
    if needs.is_bound_to(site):
        return None
    if site.status == TEST:
        if needs.label == TEST:
            return None
        return Skip(site.name, codes.SITE_TEST_ONLY, "the site takes label test only, the task has {}", (needs.label,))
    code = codes.SITE_BROKEROFF if site.status == BROKEROFF else codes.SITE_OFFLINE
    return Skip(site.name, code, "the site's status is {}", (site.status,))
