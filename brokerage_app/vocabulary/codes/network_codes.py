"""Links, and the connectivity of worker nodes."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

NUCLEUS_NOT_WRITABLE: Final = code(
    "nucleus_not_writable",
    "The nucleus accepts no files",
    "network",
    "site",
    "Wait until the storage of the nucleus can be written from outside again, or choose another nucleus.",
)
LINKS_FULL: Final = code(
    "links_full",
    "Too many files wait for the nucleus",
    "network",
    "nobody",
    "Wait: outputs are on their way to the nucleus; NQUEUED_NUC_CAP_FOR_JOBS is the limit.",
    severity="info",
)
LINK_BLOCKED: Final = code(
    "link_blocked",
    "The link to the nucleus is blocked",
    "network",
    "expert",
    "Find out why the network table closes the link: its closeness is -1.",
)
LINK_FULL: Final = code(
    "link_full",
    "Too many files wait on the link",
    "network",
    "nobody",
    "Wait: outputs are on their way; NQUEUED_SAT_CAP is the limit for a link.",
    severity="info",
)
SLOW_NETWORK: Final = code(
    "slow_network",
    "Network too slow for express work",
    "network",
    "nobody",
    "Tasks of priority 1000 or more use only queues with a good link; lower the priority or NW_THRESHOLD, or wait.",
    severity="info",
)
NO_CONNECTIVITY: Final = code(
    "no_connectivity",
    "Worker nodes lack the connectivity",
    "network",
    "user",
    "Ask for less outbound connectivity, or allow sites whose worker nodes have it.",
    severity="error",
)
NUCLEUS_BACKLOG: Final = code(
    "nucleus_backlog",
    "Too many outputs are on their way to the nucleus",
    "network",
    "expert",
    "Wait until the files have arrived, or raise NQUEUED_NUC_CAP.",
)
