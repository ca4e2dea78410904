"""Errors of jobs: which of several explains why a job failed, its code, and a sentence. Pure.

A job has room for one error of each part that had to do with it, and often several are filled. There is one order of
them, NAMES: pages, mails, dialogs, retry rules, libraries and fingerprints all ask here, in Python or by the statement
that is made of the same table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tasks_app.domain.states import JobStatus

# ruff: noqa: S608 - names of our own columns


@dataclass(frozen=True, slots=True)
class Component:
    """One of the parts that can fail a job, with the attributes of a job that hold its code and its text."""

    name: str
    code_field: str
    diag_field: str
    title: str

    @property
    def columns(self) -> dict[str, str]:
        """The columns of those attributes."""
        return {self.code_field: f"{self.name}errorcode", self.diag_field: f"{self.name}errordiag"}


COMPONENTS: Final = (
    Component("pilot", "pilot_error_code", "pilot_error_diag", "the pilot"),
    Component("exe", "exe_error_code", "exe_error_diag", "the payload"),
    Component("ddm", "ddm_error_code", "ddm_error_diag", "data management"),
    Component("brokerage", "brokerage_error_code", "brokerage_error_diag", "the broker"),
    Component("jobdispatcher", "dispatcher_error_code", "dispatcher_error_diag", "the dispatcher"),
    Component("taskbuffer", "task_buffer_error_code", "task_buffer_error_diag", "the server"),
    Component("sup", "sup_error_code", "sup_error_diag", "the supervisor"),
)
TRANS: Final = "trans"
"""The exit code of the transform, a text; it stands for errors of which no part says more."""
TRANS_EXIT: Final = "trans_exit_code"
PAYLOAD: Final = ("exe", TRANS)
"""What the payload itself says."""
PAYLOAD_FAILED: Final = 1305
"""The pilot's word that the payload failed: whatever else is known explains more."""
OUTPUT_MISSING: Final = 1165
"""The pilot's word that an output is not there, by the name that the site gave it: the payload's own last line, if it speaks of
this, has the name that the user gave."""
FIELDS: Final = (*(component.code_field for component in COMPONENTS), TRANS_EXIT)
ALL_FIELDS: Final = (*FIELDS, *(component.diag_field for component in COMPONENTS))
NAMES: Final = (*(component.name for component in COMPONENTS), TRANS)
"""In the order in which they explain a job: what ended it, what became of it, its bare exit code. PAYLOAD_FAILED comes last,
and a kill first: whatever else is known of a job that was told to stop came of that."""
ENDED_BADLY: Final = (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.CLOSED, JobStatus.HOLDING)
"""States of jobs that have an error to explain: a code on a job that goes on or has finished is not shown as one."""
LONGEST_CODE: Final = 40
"""Characters of an exit code that are read: it is a text, and a pilot may write anything there."""
KILLS: Final = range(100, 200)
"""Codes of the server for jobs that it killed: 100 and the code of the kill."""
RANGES_FAILED: Final = (118, 119)
"""Codes of the server for jobs whose ranges of events have no attempt left: nobody killed them, and the error of the ranges
explains more."""

# What the pilots' codes mean, said in our own words.
PILOT_CODES: Final[Mapping[int, str]] = {
    1098: "The worker node ran out of disk space.",
    1099: "An input file could not be copied to the worker node.",
    1104: "The job's work folder exceeded its limit.",
    1110: "The job could not be set up.",
    1133: "No storage was given for the outputs.",
    1137: "An output file could not be copied to its storage.",
    1144: "The pilot killed the job at the server's request.",
    1149: "The transform could not be fetched.",
    1150: "The payload wrote nothing for too long and was taken to be looping.",
    1165: "The payload ended successfully, but an expected output file is missing.",
    1171: "An input file has a wrong checksum.",
    1201: "The job was ended from outside: by the batch system, or because its worker was stopped.",
    1212: "The payload ran out of memory.",
    1213: "The payload exceeded the time limit of the job.",
    1221: "The storage has another file under the name of an output.",
    1235: "The job used more memory than it asked for.",
    1246: "The sandbox with the user's code is missing.",
    1305: "The payload ended with an error.",
    1310: "The pilot itself failed.",
    1313: "The pilot cannot reach the storage.",
    1318: "The pilot could not reach the server.",
    1319: "The pilot itself failed.",
    1320: "The log file could not be made.",
    1331: "An input file does not exist at its storage.",
    1349: "The pilot was started with unknown arguments.",
}


STORAGE_AWAY: Final = "The folder of the storage is away: "
"""Begins what pilots, or this site, say of inputs that lie in a storage that is not mounted or fails."""
_NO_INPUT, _NO_SET_UP = "its input could not be read", "it could not be set up"
_BEFORE_PAYLOAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("1099", "1100", "1103", "1145", "1151", "1171", "1180", "1331"), _NO_INPUT),
    **dict.fromkeys(("1110", "1116", "1117", "1186", "1211"), _NO_SET_UP),
    "1149": "its program could not be fetched",
    "1246": "its sandbox could not be fetched",
    "1349": "its command line cannot be used",
}
"""What pilots report of jobs whose payload they did not start, whatever state they had told before: stage-in and set-up."""


@dataclass(frozen=True, slots=True)
class JobError:
    """An error of a job: `detail` is what the part itself said. The sign of a pilot's code, by which it says that another
    attempt may help, is left out: it is the same error."""

    component: str
    code: str
    detail: str = ""

    @property
    def number(self) -> int | None:
        """The code as retry rules give it; None for an exit code that is no number."""
        return int(self.code) if re.fullmatch("-?[0-9]{1,10}", self.code) else None

    @property
    def key(self) -> str:
        return f"{self.component}:{self.code}"

    @property
    def before_payload(self) -> str:
        """Why the payload was never started, in words; "" for errors that may come later, too."""
        return _BEFORE_PAYLOAD.get(self.code, "") if self.component == "pilot" else ""

    @property
    def sentence(self) -> str:
        """What went wrong, for people."""
        if self.component == "pilot" and self.detail.startswith(STORAGE_AWAY):
            return f"{self.detail.splitlines()[0][:200].rstrip('.')}."
        if self.component == "pilot" and int(self.code) in PILOT_CODES:
            return PILOT_CODES[int(self.code)]
        if self.component in PAYLOAD:
            return f"The payload ended with exit code {self.code}."
        if self.detail.strip():
            first = self.detail.strip().splitlines()[0][:200]
            return first if first.endswith((".", "!", "?")) else f"{first}."
        title = next((part.title for part in COMPONENTS if part.name == self.component), self.component)
        return f"{title[:1].upper()}{title[1:]} reported code {self.code}."


def errors_in(values: Mapping[str, Any]) -> list[JobError]:
    """The errors of a job, the one that explains most first, from its fields by name."""
    found = []
    for part in COMPONENTS:
        code = int(values.get(part.code_field) or 0)
        if code:
            text = str(abs(code) if part.name == "pilot" else code)
            told = values.get("exe_error_diag") if text == str(OUTPUT_MISSING) and part.name == "pilot" else ""
            found.append(JobError(part.name, text, str(told or values.get(part.diag_field) or "")))
    exit_code = str(values.get(TRANS_EXIT) or "").strip(" ")[:LONGEST_CODE].strip(" ")
    if not re.fullmatch("-?0*", exit_code):
        detail = str(values.get("exe_error_diag") or values.get("pilot_error_diag") or "")
        found.append(JobError(TRANS, exit_code, detail))
    return sorted(found, key=_rank)


def main_error(values: Mapping[str, Any]) -> JobError | None:
    """The error that best explains a failed job, from its fields by name; None when no part reports one."""
    return next(iter(errors_in(values)), None)


def error_of(values: Mapping[str, Any]) -> JobError | None:
    """The error that explains a job, from its status and error fields by name; None when it did not end badly."""
    return main_error(values) if values["status"] in ENDED_BADLY else None


def reported(component: str, code: int, diag: str) -> list[JobError]:
    """The errors of a job of which one part alone gives a code; none for the code 0."""
    if component == TRANS:
        return errors_in({TRANS_EXIT: code, "exe_error_diag": diag})
    part = next(part for part in COMPONENTS if part.name == component)
    return errors_in({part.code_field: code, part.diag_field: diag})


def _rank(error: JobError) -> int:
    if error.component == "taskbuffer" and int(error.code) in KILLS and int(error.code) not in RANGES_FAILED:
        return -1
    return int((error.component, error.code) == ("pilot", str(PAYLOAD_FAILED)))


def statement(column_of: Mapping[str, str]) -> str:
    """What stands behind LATERAL for the errors of a job, as `errors_in`: rows of (rank, component, code, diag), with the
    code as text. `column_of`: how a statement names each of ALL_FIELDS."""
    rows = []
    for place, part in enumerate(COMPONENTS):
        code, diag = column_of[part.code_field], column_of[part.diag_field]
        if part.name == "pilot":
            code = f"abs({code}::bigint)"
            told = f"nullif({column_of['exe_error_diag']}, '')"
            diag = f"CASE {code} WHEN {OUTPUT_MISSING} THEN coalesce({told}, {diag}) ELSE {diag} END"
        rows.append(f"({place}, '{part.name}', nullif({code}, 0)::text, coalesce({diag}, ''))")
    exit_code = f"btrim(left(btrim({column_of[TRANS_EXIT]}), {LONGEST_CODE}))"
    exit_code = f"nullif(regexp_replace({exit_code}, '^-?0*$', ''), '')"
    said = f"coalesce(nullif({column_of['exe_error_diag']}, ''), {column_of['pilot_error_diag']}, '')"
    rows.append(f"({len(rows)}, '{TRANS}', {exit_code}, {said})")
    values = ",\n            ".join(rows)
    return f"""(SELECT CASE WHEN r.component = 'pilot' AND r.code = '{PAYLOAD_FAILED}' THEN 99
                       WHEN r.component = 'taskbuffer' AND r.code ~ '^1[0-9][0-9]$'
                        AND r.code NOT IN ({", ".join(f"'{code}'" for code in RANGES_FAILED)}) THEN -1 ELSE r.place END AS rank,
                 r.component, r.code, r.diag
            FROM (VALUES {values}) r (place, component, code, diag)
           WHERE r.code IS NOT NULL)"""


ERRORS_OF_J: Final = statement(
    {name: f"j.{column}" for part in COMPONENTS for name, column in part.columns.items()}
    | {TRANS_EXIT: "j.transexitcode"}
)
"""The statement for a row `j` of jobs."""
NO_ERROR: Final = "none"
"""What stands for component and code of failed jobs of which no part said why."""
