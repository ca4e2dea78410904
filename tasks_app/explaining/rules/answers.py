"""A gate: one question that a task or a job has to pass, with its answer, and what would help. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from brokerage_app.advice.task_remedies import Remedy
from jedisite import refusals
from jedisite.vocabulary.words import plural

Answer = Literal["yes", "no", "not asked", "not reached"]


NOTHING_HELPS: Final = "No single change was found that would let a site accept its jobs. "
"""Where changes were tried at all sites; else LITTLE_TRIED."""
LITTLE_TRIED: Final = (
    "No change that was tried lets a site accept its jobs; on a grid of this size none was tried at {}. "
)
LOOK: Final = "The list of sites shows why each site refuses the jobs; What if tries several changes at once."


@dataclass(frozen=True, slots=True)
class Gate:
    """One step with its answer. `code` and `sentence` say why not; of a "yes" the sentence says how it stands, and a code what
    holds a part of the jobs up.

    remedies   changes that help, as deciding again has shown; None where nobody has tried any
    untried    sites at which none was tried
    helps      what would help, with the numbers of now; "" where the advice of the code is all there is
    command    what helps when it is run in a shell on the machine of the site; "" where nothing does
    """

    name: str
    title: str
    answer: Answer
    code: str = ""
    sentence: str = ""
    since: datetime | None = None
    remedies: tuple[Remedy, ...] | None = None
    untried: int = 0
    command: str = ""
    helps: str = ""

    def __post_init__(self) -> None:
        if self.code:
            refusals.checked(self.code)

    @property
    def advice(self) -> str:
        if self.remedies:
            return " ".join(one.sentence for one in self.remedies)
        if self.remedies is not None and self.who != "nobody":
            # What a site has to publish no what-if can change: there the advice of the code is all there is.
            said = refusals.get(self.code) if self.code else None
            nothing = LITTLE_TRIED.format(plural(self.untried, "site")) if self.untried else NOTHING_HELPS
            first = f"{said.advice} " if said is not None and said.group == "software" else ""
            return f"{first}{nothing}{LOOK}"
        return self.helps or (refusals.get(self.code).advice if self.code else "")

    @property
    def who(self) -> str:
        if self.remedies:
            return self.remedies[0].who
        if self.helps:
            return "expert"
        return refusals.get(self.code).who_can_fix if self.code else ""

    @property
    def severity(self) -> str:
        return refusals.get(self.code).severity if self.code else ""


def first_no(gates: tuple[Gate, ...]) -> Gate | None:
    return next((gate for gate in gates if gate.answer == "no"), None)


def first_held(gates: tuple[Gate, ...]) -> Gate | None:
    """The first gate that only a part of the jobs has passed."""
    return next((gate for gate in gates if gate.answer == "yes" and gate.code), None)


def as_json(gate: Gate) -> dict[str, Any]:
    return {
        "name": gate.name,
        "title": gate.title,
        "answer": gate.answer,
        "code": gate.code,
        "sentence": gate.sentence,
        "advice": gate.advice,
        "command": gate.command,
        "who_can_fix": gate.who,
        "since": gate.since,
        "remedies": [
            {"sentence": one.sentence, "who_can_fix": one.who, "changes": one.lines, "sites": one.sites}
            for one in gate.remedies or ()
        ],
    }
