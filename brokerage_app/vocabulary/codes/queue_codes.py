"""How many jobs wait, which kinds of jobs a queue takes, and weights."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

QUEUE_FULL: Final = code(
    "queue_full",
    "Enough jobs are queued already",
    "capacity",
    "nobody",
    "Wait: jobs are made as the site starts those that are queued.",
    severity="info",
)
JUMBO_QUEUE: Final = code(
    "jumbo_queue",
    "Takes jumbo jobs only",
    "events",
    "nobody",
    "The queue is kept for jumbo jobs.",
    severity="info",
)
FEW_EVENTS: Final = code(
    "few_events",
    "Too few events are ready for a jumbo job",
    "events",
    "nobody",
    "Wait until more events are ready, or let other queues have them.",
    severity="info",
)
NO_EVENT_SERVICE: Final = code(
    "no_event_service",
    "Takes no event service",
    "events",
    "site",
    "Allow sites whose queues take event-service jobs (jobseed es, eshigh or all).",
)
EVENT_SERVICE_HIGH_ONLY: Final = code(
    "event_service_high_only",
    "Takes urgent event service only",
    "events",
    "user",
    "Raise the priority to 900, or allow other sites.",
)
EVENT_SERVICE_NEEDS_CORES: Final = code(
    "event_service_needs_cores",
    "Single-core slots take no event service here",
    "events",
    "nobody",
    "Event service runs in slots of several cores of this queue.",
    severity="info",
)
EVENT_SERVICE_ONLY: Final = code(
    "event_service_only",
    "Takes event service only",
    "events",
    "nobody",
    "The queue is kept for event service.",
    severity="info",
)
TOO_MANY_TRANSFERRING: Final = code(
    "too_many_transferring",
    "Too many outputs are being transferred",
    "capacity",
    "nobody",
    "Wait until outputs of finished jobs have left the site.",
    severity="info",
)
USER_QUEUE_LONG: Final = code(
    "user_queue_long",
    "The user has enough jobs waiting there",
    "capacity",
    "nobody",
    "Wait: more jobs are made as those that wait there start.",
    severity="info",
)
OVERLOADED: Final = code(
    "overloaded",
    "Busier than other queues",
    "capacity",
    "nobody",
    "Wait, or let it pass: queues with shorter waits are used first.",
    severity="info",
)
OVERLOADED_VIRTUAL: Final = code(
    "overloaded_virtual",
    "Busier than other queues, and its storage is virtual",
    "capacity",
    "nobody",
    "Wait: a queue that has to fetch the input is used only while it is not busy.",
    severity="info",
)
LOCKED: Final = code(
    "locked",
    "Another broker is looking at the queue",
    "capacity",
    "nobody",
    "Wait: the queue is looked at again in the next pass.",
    severity="info",
)
QUEUE_FULL_OF_TYPE: Final = code(
    "queue_full_of_type",
    "Enough jobs of this resource type are queued",
    "capacity",
    "nobody",
    "Wait: jobs are made as the site starts those that are queued.",
    severity="info",
)
BOOTSTRAP_ELSEWHERE: Final = code(
    "bootstrap_elsewhere",
    "First jobs go to another part of the queue",
    "weight",
    "nobody",
    "The queue is empty: one kind of its slots gets the first jobs.",
    severity="info",
)
BELOW_MIN_WEIGHT: Final = code(
    "below_min_weight",
    "Weight below the minimum",
    "weight",
    "expert",
    "MIN_WEIGHT says what a queue must weigh to be used.",
    severity="info",
)
LOW_WEIGHT: Final = code(
    "low_weight",
    "Others fit better",
    "weight",
    "nobody",
    "Only the best queues get jobs in one round; this one gets its turn when it is among them.",
    severity="info",
)
