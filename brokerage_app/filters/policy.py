"""Rules on what the task itself wants."""

from __future__ import annotations

from brokerage_app import codes
from brokerage_app.case import Case
from brokerage_app.needs import names
from brokerage_app.snapshot import SiteView
from brokerage_app.verdict import Skip


def preassigned(case: Case, site: SiteView) -> Skip | None:
    """Work that is bound to one site goes nowhere else."""
    needs = case.needs
    if not needs.preassigned_site or needs.is_bound_to(site):
        return None
    return Skip(site.name, codes.NOT_PREASSIGNED, "the work is bound to {}", (needs.preassigned_site,))


def not_excluded(case: Case, site: SiteView) -> Skip | None:
    """A site on the task's list of excluded sites is left out."""
    excluded = case.needs.excluded_sites
    if not excluded or not names(excluded, site.name):
        return None
    return Skip(site.name, codes.EXCLUDED, "the task excludes {}", (_listed(excluded),))


def included(case: Case, site: SiteView) -> Skip | None:
    """When the task lists sites, only those."""
    needs = case.needs
    if not needs.included_sites or needs.is_bound_to(site) or names(needs.included_sites, site.name):
        return None
    return Skip(site.name, codes.NOT_INCLUDED, "the task wants only {}", (_listed(needs.included_sites),))


def _listed(patterns: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(patterns[:most])
    return f"{shown} and {len(patterns) - most} more" if len(patterns) > most else shown
