"""What tasks, sites and the installation allow."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

SITE_UNKNOWN: Final = code(
    "site_unknown",
    "The task's site does not exist",
    "policy",
    "user",
    "Reassign the task to a site that exists.",
    severity="error",
)
EXCLUDED: Final = code(
    "excluded",
    "Excluded by the task",
    "policy",
    "user",
    "Kill the task and run it again (incexec) with another excludedSite.",
)
NOT_INCLUDED: Final = code(
    "not_included",
    "Not among the task's sites",
    "policy",
    "user",
    "Reassign the task to the site, or run it again (incexec) with another includedSite.",
)
NOT_PREASSIGNED: Final = code(
    "not_preassigned",
    "Bound to another site",
    "policy",
    "user",
    "The work is bound to other sites, for instance to those with its data or libraries; remove that condition to use this site.",
    severity="info",
)
TEST_QUEUE: Final = code(
    "test_queue",
    "Queue for tests",
    "policy",
    "nobody",
    "Queues with test in their name get no production jobs; to use one, name it as the task's only site.",
    severity="info",
)
OTHER_KIND: Final = code(
    "other_kind",
    "Queue is for another kind of jobs",
    "policy",
    "expert",
    "The queue accepts either production or analysis; set its type to unified for both.",
    severity="info",
)
OTHER_CLOUD: Final = code(
    "other_cloud",
    "Queue is in another cloud",
    "policy",
    "user",
    "Remove the cloud from the task to let it run everywhere.",
)
PROCESSING_TYPE: Final = code(
    "processing_type",
    "Queue does not accept this kind of processing",
    "policy",
    "site",
    "Allow other sites, or have allowed_processing or excluded_processing of the queue changed.",
)
TAKEN_BACK: Final = code(
    "taken_back",
    "Work was taken back from the queue",
    "policy",
    "nobody",
    "Jobs of this work waited too long at the queue; other queues are tried first.",
    severity="info",
)
BUILD_FAILS_THERE: Final = code(
    "build_fails_there",
    "Sources cannot be built at the site",
    "policy",
    "site",
    "Read the logs of the build jobs there; retry the task to try the site again.",
)
OPPORTUNISTIC: Final = code(
    "opportunistic",
    "Opportunistic queue",
    "policy",
    "nobody",
    "Urgent tasks and scouts do not use queues that may withdraw their slots; lower the priority to use them.",
    severity="info",
)
ZERO_SHARE: Final = code(
    "zero_share",
    "Fair-share policy of the queue excludes the work",
    "policy",
    "site",
    "Allow other sites, or have the fair-share policy of the queue changed.",
)
NON_PLEDGED: Final = code(
    "non_pledged",
    "Unpledged queue while work is short",
    "policy",
    "expert",
    "WORK_SHORTAGE is set: pledged queues get the work first.",
    severity="info",
)
OVER_PLEDGED: Final = code(
    "over_pledged",
    "Queue is above its pledge while work is short",
    "policy",
    "expert",
    "WORK_SHORTAGE is set: queues below their pledge get the work first.",
    severity="info",
)
OUTSIDE_NUCLEUS: Final = code(
    "outside_nucleus",
    "Not a queue of the nucleus",
    "policy",
    "user",
    "The task stays at its nucleus (t1Weight -1); remove that setting to use other sites.",
)
NOT_BUSIEST_OF_NUCLEUS: Final = code(
    "not_busiest_of_nucleus",
    "Not the first choice at the nucleus",
    "policy",
    "nobody",
    "With t1Weight -1 only the busiest queue of the nucleus is used.",
    severity="info",
)
OUTSIDE_FULL_CHAIN: Final = code(
    "outside_full_chain",
    "The chain of tasks stays at its nucleus",
    "policy",
    "user",
    "Remove fullChain from the task to use other sites.",
)
FULL_CHAIN_ONLY: Final = code(
    "full_chain_only",
    "Queue is for whole chains of tasks only",
    "policy",
    "nobody",
    "The queue is reserved for chains of tasks that stay there.",
    severity="info",
)
HOSPITAL: Final = code(
    "hospital",
    "Queue for difficult jobs",
    "policy",
    "nobody",
    "Queues whose names end in _HOSPITAL are used only when no other queue is left.",
    severity="info",
)
NUCLEUS_UNKNOWN: Final = code(
    "nucleus_unknown",
    "The task's nucleus does not exist",
    "policy",
    "user",
    "Reassign the task to a nucleus that exists, or describe the site.",
    severity="error",
)
NUCLEUS_FULL_CHAIN: Final = code(
    "nucleus_full_chain",
    "Nucleus and task disagree about whole chains",
    "policy",
    "user",
    "Change the task's fullChain, or the nucleus's bareNucleus.",
)
