"""How many sites were left after each reason of a broker, in the order in which it asks. Pure.

A stored verdict has one reason a site. A site that a rule refused for the time being, and no later rule for good, stands
at its reason's place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from brokerage_app.brokers import analysis_job, production_rules
from brokerage_app.filters import nucleus
from brokerage_app.vocabulary import codes

PRODUCTION: Final = "production"
ANALYSIS: Final = "analysis"
GENERIC: Final = "generic"
NUCLEI: Final = "task"
"""The kind of decisions that choose a nucleus."""
_ELSEWHERE_FIRST: Final = (codes.TAKEN_BACK, codes.PILOTS_STOPPED)
"""What `elsewhere_first` leaves out of the sites that would do. Weights are asked of the others."""
_WEIGHED: Final = (codes.BOOTSTRAP_ELSEWHERE, codes.BELOW_MIN_WEIGHT, codes.NOT_BUSIEST_OF_NUCLEUS, codes.LOW_WEIGHT)
_ASKED: Final = tuple(code for code in production_rules.LABELS if code not in _WEIGHED)
_BEHIND: Final = _ASKED.index(codes.NO_PILOTS) + 1
_PRODUCTION: Final = (*_ASKED[:_BEHIND], codes.BUILD_FAILS_THERE, *_ASKED[_BEHIND:], *_ELSEWHERE_FIRST, *_WEIGHED)
_GENERIC: Final = (
    codes.OTHER_CLOUD,
    codes.NOT_PREASSIGNED,
    codes.SITE_OFFLINE,
    codes.SITE_PAUSED,
    codes.SITE_STANDBY,
    codes.SITE_BROKEROFF,
    codes.SITE_TEST_ONLY,
    codes.EXCLUDED,
    codes.NOT_INCLUDED,
    codes.SCRATCH_DISK,
    codes.STORAGE_FULL,
    codes.SHORT_WALLTIME,
    codes.LONG_WALLTIME,
    codes.TOO_FEW_CORES,
    codes.MULTI_CORE_ONLY,
    codes.LOW_MEMORY,
    codes.HIGH_MEMORY,
    codes.PROCESSING_TYPE,
    codes.BAD_ARCHITECTURE,
    codes.NO_RELEASE,
    codes.NO_CPU,
    codes.NO_GPU,
    codes.NO_CONTAINER,
    codes.NO_PLATFORM,
    codes.SOURCE_NOT_SENDING,
    codes.INPUT_NOT_READABLE,
    codes.OUTPUT_NOT_WRITABLE,
    codes.NO_PILOTS,
    codes.BUILD_FAILS_THERE,
    codes.QUEUE_FULL,
    codes.USER_QUEUE_LONG,
    *_ELSEWHERE_FIRST,
    codes.LOW_WEIGHT,
)
_ANALYSIS: Final = (
    codes.NO_DATA_THERE,
    codes.SITE_OFFLINE,
    codes.SITE_PAUSED,
    codes.SITE_STANDBY,
    codes.SITE_BROKEROFF,
    codes.SITE_TEST_ONLY,
    codes.ZERO_SHARE,
    codes.DISK_IO_BUSY,
    codes.IO_INTENSITY,
    codes.VIRTUAL_STORAGE,
    codes.TOO_FEW_CORES,
    codes.MULTI_CORE_ONLY,
    codes.TOO_MANY_CORES,
    codes.HARDWARE_RESERVED,
    codes.NO_RELEASE,
    codes.NO_CPU,
    codes.NO_GPU,
    codes.NO_CONTAINER,
    codes.NO_PLATFORM,
    codes.LOW_MEMORY,
    codes.HIGH_MEMORY,
    codes.NO_DIRECT_ACCESS,
    codes.SCRATCH_DISK,
    codes.NO_OUTPUT_STORAGE,
    codes.STORAGE_FULL,
    codes.INPUT_NOT_READABLE,
    codes.OUTPUT_NOT_WRITABLE,
    codes.STORAGE_NOT_RECEIVING,
    codes.STORAGE_NOT_SENDING,
    codes.SOURCE_NOT_SENDING,
    codes.LOCAL_QUOTA,
    codes.SHORT_WALLTIME,
    codes.LONG_WALLTIME,
    codes.SHORT_FOR_SCOUTS,
    codes.SHORT_FOR_UNKNOWN,
    codes.NO_PILOTS,
    codes.EXCLUDED,
    codes.NOT_INCLUDED,
    codes.OTHER_CLOUD,
    codes.NOT_PREASSIGNED,
    codes.FILES_NOT_THERE,
    codes.BUILD_FAILS_THERE,
    codes.QUEUE_FULL,
    codes.USER_QUEUE_LONG,
    codes.CLOSED_THERE,
    codes.TAKEN_BACK,
    codes.FAILING_THERE,
    codes.OVERLOADED,
    codes.OVERLOADED_VIRTUAL,
    codes.HOSPITAL,
    codes.PILOTS_STOPPED,
    codes.BELOW_MIN_WEIGHT,
    codes.LOW_WEIGHT,
)


@cache
def order_of(broker: str, kind: str = "job") -> Mapping[str, int]:
    """The place of each code among the reasons of a broker.

    Codes that are not named are those of queues that are no candidates at all: they come before the first.
    """
    if kind == NUCLEI:
        found: Collection[str] = nucleus.LABELS.values()
    elif broker == PRODUCTION:
        found = _PRODUCTION
    elif broker == ANALYSIS:
        found = (*_ANALYSIS, *(code for code in analysis_job.LABELS if code not in _ANALYSIS))
    else:
        found = _GENERIC
    return {code: place for place, code in enumerate(found, 1)}


@dataclass(frozen=True, slots=True)
class Step:
    """Sites before and after one reason. `gate` is its place among those that took sites away, from 1."""

    gate: int
    code: str
    before: int
    after: int

    @property
    def gone(self) -> int:
        return self.before - self.after


def funnel(broker: str, kind: str, chosen: int, reasons: Mapping[str, Collection[str]]) -> list[Step]:
    """What each reason took away, in the order of the broker.

    reasons   the sites that each code skipped, as verdicts are stored
    """
    order = order_of(broker, kind)
    left = chosen + sum(map(len, reasons.values()))
    steps = []
    for number, code in enumerate(sorted(reasons, key=lambda code: (order.get(code, 0), code)), 1):
        steps.append(Step(number, code, left, left - len(reasons[code])))
        left = steps[-1].after
    return steps
