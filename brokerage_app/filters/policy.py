"""Rules on what the task itself wants."""

from __future__ import annotations

from brokerage_app import codes
from brokerage_app.needs import TaskNeeds, names
from brokerage_app.snapshot import SiteView
from brokerage_app.verdict import Skip


def preassigned(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """Work that is bound to one site goes nowhere else."""
    if not needs.preassigned_site or needs.is_bound_to(site):
        return None
    return Skip(site.name, codes.NOT_PREASSIGNED, f"the work is bound to {needs.preassigned_site}")


def not_excluded(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """A site on the task's list of excluded sites is left out."""
    if not names(needs.excluded_sites, site.name):
        return None
    return Skip(site.name, codes.EXCLUDED, f"the task excludes {_listed(needs.excluded_sites)}")


def included(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """When the task lists sites, only those."""
    if not needs.included_sites or needs.is_bound_to(site) or names(needs.included_sites, site.name):
        return None
    return Skip(site.name, codes.NOT_INCLUDED, f"the task wants only {_listed(needs.included_sites)}")


def _listed(patterns: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(patterns[:most])
    return f"{shown} and {len(patterns) - most} more" if len(patterns) > most else shown
