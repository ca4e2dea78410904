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
    "Site is on standby",
    "state",
    "shifter",
    "Until the site is set online it accepts only work that is bound to it; to use it, name it as the task's only site.",
)
SITE_BROKEROFF: Final = code(
    "site_brokeroff",
    "Brokerage switched off",
    "state",
    "shifter",
    "The site finishes its jobs and accepts no new ones; set it online, or name it as the task's only site.",
)
SITE_TEST_ONLY: Final = code(
    "site_test_only",
    "Test jobs only",
    "state",
    "shifter",
    "Until the site is set online it accepts only jobs with the label test.",
)
PILOTS_STOPPED: Final = code(
    "pilots_stopped",
    "No pilot asks for jobs there now",
    "state",
    "site",
    "Find out why no pilot of the queue asks for jobs; until one does, other queues are tried first.",
    severity="info",
)
INACTIVE: Final = code(
    "inactive",
    "Queue has started no job for hours",
    "state",
    "site",
    "Find out why the site starts no jobs although some wait there.",
)
NO_PILOTS: Final = code(
    "no_pilots",
    "No pilot has called",
    "state",
    "site",
    "Find out why no pilot of the queue reaches the server: check the batch system, the factory and the token.",
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
    "Find out why the jobs fail, correct the cause and retry the task: earlier failures no longer count. For some hours its "
    "other queues go first.",
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
