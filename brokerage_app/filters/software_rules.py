"""Rules on what worker nodes have: software, hardware, connectivity."""

from __future__ import annotations

from brokerage_app.cases.case import GridCase, PlaceCase
from brokerage_app.filters.asking import at
from brokerage_app.formulas import connectivity, software
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip


def has_software(case: PlaceCase, site: SiteView) -> Skip | None:
    """The release, platform, container and hardware that the task asks for."""
    return at(site, software.accepts(case.platform, case.software(site), case.sources()))


def has_gpu(case: PlaceCase, site: SiteView) -> Skip | None:
    """The GPU that the task asks for."""
    return at(site, software.accepts_gpu(case.platform, case.software(site)))


def has_connectivity(case: GridCase, site: SiteView) -> Skip | None:
    """The connectivity of worker nodes that the task asks for."""
    needs = case.needs
    return at(site, connectivity.refuses(site.connectivity, needs.network, needs.ip_stack))
