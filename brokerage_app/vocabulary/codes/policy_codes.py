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
    "The work is bound to other sites, for instance to where its data or its libraries are; take that out to use this one.",
    severity="info",
)
TEST_QUEUE: Final = code(
    "test_queue",
    "Queue for tests",
    "policy",
    "nobody",
    "Queues with test in their name get no production; name the queue as the task's only site to use it.",
    severity="info",
)
OTHER_KIND: Final = code(
    "other_kind",
    "Takes another kind of jobs",
    "policy",
    "expert",
    "The queue takes either production or analysis; set its type to unified for both.",
    severity="info",
)
OTHER_CLOUD: Final = code(
    "other_cloud",
    "In another cloud",
    "policy",
    "user",
    "Take the cloud out of the task to let it run everywhere.",
)
PROCESSING_TYPE: Final = code(
    "processing_type",
    "Does not take this kind of processing",
    "policy",
    "site",
    "Allow other sites, or have allowed_processing or excluded_processing of the queue changed.",
)
TAKEN_BACK: Final = code(
    "taken_back",
    "Work was taken back from there",
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
    "Look at the logs of the build jobs there; a retry of the task tries the site again.",
)
OPPORTUNISTIC: Final = code(
    "opportunistic",
    "Opportunistic queue",
    "policy",
    "nobody",
    "Urgent tasks and scouts do not use queues that may take their slots back; lower the priority to use them.",
    severity="info",
)
ZERO_SHARE: Final = code(
    "zero_share",
    "The queue gives this kind of work no share",
    "policy",
    "site",
    "The queue's fair-share policy leaves this work out; allow other sites, or have the policy changed.",
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
    "Runs more than its pledge while work is short",
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
    "The task asks to stay at its nucleus (t1Weight -1); take that out to use other sites.",
)
NOT_BUSIEST_OF_NUCLEUS: Final = code(
    "not_busiest_of_nucleus",
    "Not the first choice at the nucleus",
    "policy",
    "nobody",
    "With t1Weight -1 only the queue that runs most is used.",
    severity="info",
)
OUTSIDE_FULL_CHAIN: Final = code(
    "outside_full_chain",
    "The chain of tasks stays at its nucleus",
    "policy",
    "user",
    "Take fullChain out of the task to use other sites.",
)
FULL_CHAIN_ONLY: Final = code(
    "full_chain_only",
    "Takes whole chains of tasks only",
    "policy",
    "nobody",
    "The queue is kept for chains of tasks that stay there.",
    severity="info",
)
HOSPITAL: Final = code(
    "hospital",
    "Queue for difficult jobs",
    "policy",
    "nobody",
    "Queues whose names end in _HOSPITAL are used when no other is left.",
    severity="info",
)
NUCLEUS_UNKNOWN: Final = code(
    "nucleus_unknown",
    "The task's nucleus is not known",
    "policy",
    "user",
    "Reassign the task to a nucleus that exists, or describe the site.",
    severity="error",
)
NUCLEUS_FULL_CHAIN: Final = code(
    "nucleus_full_chain",
    "Whole chains of tasks: nucleus and task do not fit",
    "policy",
    "user",
    "Change the task's fullChain, or the nucleus's bareNucleus.",
)
