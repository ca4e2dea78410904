"""Which work a queue refuses: `fairsharepolicy`, "zero share" of the JEDI brokerage document.

    type=evgen:100%,type=simul:100%,type=any:0%

A policy is a list of sub-policies with commas between them, read from left to right; the first that applies decides.
A sub-policy is a list of fields with colons between them, all of which have to match, and a value: 0 or 0% refuses the
work, every other value takes it. Fields are `type`, `group` and `gshare` with a name, `any` or a pattern (`*` stands
for anything), and `priority` with a comparison. Work to which nothing applies is taken.

A field that is none of these asks nothing, so its sub-policy applies to all work; a blank after a comma makes one.
`Policy.faults` names them, for who writes policies.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip
from jedisite.vocabulary.patterns import Pattern, PatternError, compiled

EXEMPT_WORK_QUEUES: Final = frozenset({"test", "validation"})
"""Work of these work queues is not asked."""
TEST_GROUP: Final = "test"
OTHERS: Final = "others"

_OWN_GROUP: Final = ("evgen", "simul", "reprocessing", "mcore", "group", "deriv", "pile", "merge")
_TESTS: Final = ("prod_test", "validation", "ptest", "rc_test", "rc_test2", "rc_alrb")
_GROUPS: Final = dict(zip(_OWN_GROUP, _OWN_GROUP, strict=True)) | dict.fromkeys(_TESTS, TEST_GROUP)

_NAMED: Final = re.compile(r"(type|group|gshare)=(.*)", re.DOTALL)
_PRIORITY: Final = re.compile(r"priority(>=|<=|!=|==|>|<|=)\s*(-?\d{1,18})", re.ASCII)
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_STAR: Final = re.compile(r"(?<!\.)\*")
_SIGNS: Final = frozenset("*.?+[](){}|^$\\")


@dataclass(frozen=True, slots=True)
class Work:
    """What policies look at. `process_group`: see the function of that name; `priority` is the current one."""

    process_group: str = OTHERS
    working_group: str = ""
    share: str = ""
    priority: int = 0
    merging: bool = False


@dataclass(frozen=True, slots=True)
class SubPolicy:
    """One sub-policy. `names`: (field, name or pattern), those with `any` left out; `priorities`: (sign, number)."""

    text: str
    zero: bool
    names: tuple[tuple[str, str | Pattern], ...] = ()
    priorities: tuple[tuple[str, int], ...] = ()

    def applies(self, work: Work) -> bool:
        """Whether all fields match. Merge jobs are not asked for their priority, so a rule on that alone is not theirs."""
        for field, wanted in self.names:
            if field == "type":
                value = work.process_group
            elif field == "group":
                value = work.working_group
            elif not work.share:
                continue
            else:
                value = work.share
            if not (wanted == value if isinstance(wanted, str) else wanted.fullmatch(value)):
                return False
        if not self.priorities:
            return True
        if work.merging:
            return bool(self.names)
        return all(_COMPARE[sign](work.priority, number) for sign, number in self.priorities)


@dataclass(frozen=True, slots=True)
class Policy:
    """A parsed policy. `faults` are sentences on fields that ask nothing and patterns that are read as plain names."""

    subs: tuple[SubPolicy, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the queue takes the work, and the text of the sub-policy that decided; empty when none applied."""

    accepted: bool
    because: str = ""


_ACCEPTED: Final = Decision(True)


def process_group(processing_type: str | None) -> str:
    """The group by which policies know a task's processingType."""
    return _GROUPS.get(processing_type or "", OTHERS)


@lru_cache(maxsize=4096)
def parse(text: str) -> Policy:
    """The sub-policies of a text. Never raises: see `Policy.faults`."""
    subs: list[SubPolicy] = []
    faults: list[str] = []
    for part in text.split(","):
        if not part.strip():
            continue
        *fields, value = part.split(":")
        names: list[tuple[str, str | Pattern]] = []
        priorities: list[tuple[str, int]] = []
        for field in fields:
            named, priority = _NAMED.fullmatch(field), _PRIORITY.fullmatch(field)
            if priority is not None:
                priorities.append((priority[1], int(priority[2])))
            elif named is None:
                faults.append(f"{field!r} is not a field, so {part!r} ignores it")
            elif named[2] != "any":
                wanted, fault = _wanted(named[2])
                names.append((named[1], wanted))
                faults += [fault] if fault else []
        if not fields:
            faults.append(f"{part!r} has no field, so it applies to all work")
        subs.append(SubPolicy(part, value.strip() in ("0", "0%"), tuple(names), tuple(priorities)))
    return Policy(tuple(subs), tuple(faults))


def _wanted(text: str) -> tuple[str | Pattern, str]:
    """A name as it is, or a pattern compiled; a pattern that cannot be used is a name, and the second value says so."""
    if _SIGNS.isdisjoint(text):
        return text, ""
    try:
        return compiled(_STAR.sub(".*", text)), ""
    except PatternError as exc:
        return text, f"{exc}, so it is taken as a plain name"


def decide(policy: Policy, work: Work) -> Decision:
    """Whether a queue with this policy takes the work. Tests are always taken."""
    if work.process_group == TEST_GROUP:
        return _ACCEPTED
    for sub in policy.subs:
        if sub.applies(work):
            return Decision(not sub.zero, sub.text)
    return _ACCEPTED


def refuses(policy: Policy, work: Work) -> Skip | None:
    """None when the queue takes the work, else the sub-policy that keeps it out."""
    decision = decide(policy, work)
    if decision.accepted:
        return None
    says = "the site's policy has {} for work of type {}, group {}, share {}, priority {}"
    group, share = work.working_group or "none", work.share or "none"
    return Skip("", codes.ZERO_SHARE, says, (decision.because, work.process_group, group, share, work.priority))
