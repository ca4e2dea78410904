"""How many jobs wait, which kinds of jobs a queue takes, and weights."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

QUEUE_FULL: Final = code(
    "queue_full",
    "Enough jobs are queued already",
    "capacity",
    "nobody",
    "Wait: more jobs are made as the site starts those that are queued.",
    severity="info",
)
JUMBO_QUEUE: Final = code(
    "jumbo_queue",
    "Queue is for jumbo jobs only",
    "events",
    "nobody",
    "The queue is reserved for jumbo jobs.",
    severity="info",
)
NO_JUMBO_QUEUE: Final = code(
    "no_jumbo_queue",
    "Queue takes no jumbo jobs",
    "events",
    "nobody",
    "Jumbo jobs go to queues that are reserved for them (useJumboJobs).",
    severity="info",
)
FEW_EVENTS: Final = code(
    "few_events",
    "Too few events wait for a jumbo job",
    "events",
    "nobody",
    "Nothing needs to be done: consumers process the events that are left.",
    severity="info",
)
NO_EVENT_SERVICE: Final = code(
    "no_event_service",
    "Queue takes no event-service jobs",
    "events",
    "site",
    "Allow sites whose queues take event-service jobs (jobseed es, eshigh or all).",
)
NO_EVENT_CHANNEL: Final = code(
    "no_event_channel",
    "Payloads of the queue cannot take event ranges",
    "events",
    "site",
    "Allow sites whose pilots hand event ranges to payloads: the project's own pilots do.",
)
EVENT_SERVICE_HIGH_ONLY: Final = code(
    "event_service_high_only",
    "Queue takes urgent event-service jobs only",
    "events",
    "user",
    "Raise the priority to 900, or allow other sites.",
)
EVENT_SERVICE_NEEDS_CORES: Final = code(
    "event_service_needs_cores",
    "Single-core slots of the queue take no event-service jobs",
    "events",
    "nobody",
    "Event-service jobs of this queue run in multi-core slots.",
    severity="info",
)
EVENT_SERVICE_ONLY: Final = code(
    "event_service_only",
    "Queue takes event-service jobs only",
    "events",
    "nobody",
    "The queue is reserved for event-service jobs.",
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
    "The user has enough jobs queued there",
    "capacity",
    "nobody",
    "Wait: more jobs are made as queued ones start there.",
    severity="info",
)
OVERLOADED: Final = code(
    "overloaded",
    "Queue is busier than others",
    "capacity",
    "nobody",
    "Nothing needs to be done: queues with shorter waits are used first.",
    severity="info",
)
OVERLOADED_VIRTUAL: Final = code(
    "overloaded_virtual",
    "Queue is busier than others, and its storage is virtual",
    "capacity",
    "nobody",
    "Wait: a queue that must fetch the input is used only while it is not busy.",
    severity="info",
)
LOCKED: Final = code(
    "locked",
    "Another broker is using the queue",
    "capacity",
    "nobody",
    "Wait: the next pass considers the queue again.",
    severity="info",
)
QUEUE_FULL_OF_TYPE: Final = code(
    "queue_full_of_type",
    "Enough jobs of this resource type are queued",
    "capacity",
    "nobody",
    "Wait: more jobs are made as the site starts those that are queued.",
    severity="info",
)
BOOTSTRAP_ELSEWHERE: Final = code(
    "bootstrap_elsewhere",
    "First jobs go to slots of another kind",
    "weight",
    "nobody",
    "Wait: while the queue is empty, only one kind of its slots gets jobs.",
    severity="info",
)
BELOW_MIN_WEIGHT: Final = code(
    "below_min_weight",
    "Weight below the minimum",
    "weight",
    "expert",
    "MIN_WEIGHT is the weight that a queue needs to get jobs.",
    severity="info",
)
LOW_WEIGHT: Final = code(
    "low_weight",
    "Other queues fit better",
    "weight",
    "nobody",
    "Wait: in each round only the queues with the highest weights get jobs.",
    severity="info",
)
