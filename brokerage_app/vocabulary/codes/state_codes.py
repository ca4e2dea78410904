"""The state of sites, queues and pilots, and what the task's own jobs have met there."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

NO_SITE_KNOWN: Final = code(
    "no_site_known",
    "No site is known",
    "state",
    "expert",
    "Describe at least one site in the admin, or import the site descriptions.",
    severity="error",
)
SITE_OFFLINE: Final = code(
    "site_offline",
    "Site offline",
    "state",
    "site",
    "Wait until the site is online again, or reassign the task to another site.",
)
SITE_PAUSED: Final = code(
    "site_paused",
    "Site paused",
    "state",
    "site",
    "Wait until the site is online again, or reassign the task to another site.",
)
SITE_STANDBY: Final = code(
    "site_standby",
    "Site stands by",
    "state",
    "shifter",
    "The site takes only work that is bound to it until it is set online; name it as the task's only site to use it.",
)
SITE_BROKEROFF: Final = code(
    "site_brokeroff",
    "Brokerage switched off",
    "state",
    "shifter",
    "The site finishes what it has and takes nothing new; set it online, or name it as the task's only site.",
)
SITE_TEST_ONLY: Final = code(
    "site_test_only",
    "Test jobs only",
    "state",
    "shifter",
    "The site takes jobs with the label test until it is set online.",
)
PILOTS_STOPPED: Final = code(
    "pilots_stopped",
    "No pilot asks for jobs there now",
    "state",
    "site",
    "See why no pilots of the queue ask for jobs now; until they do, other queues are tried first.",
    severity="info",
)
INACTIVE: Final = code(
    "inactive",
    "Has started nothing for hours",
    "state",
    "site",
    "See why the site starts no jobs although some wait there.",
)
NO_PILOTS: Final = code(
    "no_pilots",
    "No pilot has called",
    "state",
    "site",
    "See why no pilots of the queue reach the server: the batch system, the factory, or the token.",
)
CLOSED_THERE: Final = code(
    "closed_there",
    "Jobs of the task were closed there",
    "state",
    "nobody",
    "Jobs waited there too long and were taken back; other queues are tried first for some hours.",
    severity="info",
)
FAILING_THERE: Final = code(
    "failing_there",
    "Too many jobs of the task failed there",
    "state",
    "user",
    "See why the jobs fail, mend it and retry the task: failures of before count no more. Others of its queues go first "
    "for some hours.",
)
NO_NUCLEUS_KNOWN: Final = code(
    "no_nucleus_known",
    "No nucleus is known",
    "state",
    "expert",
    "Give at least one site the role nucleus, or import the descriptions of sites.",
    severity="error",
)
NUCLEUS_INACTIVE: Final = code(
    "nucleus_inactive",
    "Nucleus is not active",
    "state",
    "shifter",
    "Wait until the nucleus is active again.",
)
