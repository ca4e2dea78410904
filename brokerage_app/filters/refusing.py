"""From the answer of a formula to a reason for leaving a site out."""

from __future__ import annotations

from brokerage_app.vocabulary.refused import Refused
from brokerage_app.vocabulary.snapshot import SiteView
from brokerage_app.vocabulary.verdict import Skip


def refusal(site: SiteView, refused: Refused | None) -> Skip | None:
    return None if refused is None else Skip(site.name, refused.code, refused.says, refused.values)
