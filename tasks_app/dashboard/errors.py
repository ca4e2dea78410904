"""Errors of jobs in words: which component failed, its code, and a sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Component:
    """One of the parts that can fail a job, with the attributes of a job that hold its code and its text."""

    name: str
    code_field: str
    diag_field: str
    title: str


COMPONENTS: Final = (
    Component("pilot", "pilot_error_code", "pilot_error_diag", "the pilot"),
    Component("exe", "exe_error_code", "exe_error_diag", "the payload"),
    Component("ddm", "ddm_error_code", "ddm_error_diag", "data management"),
    Component("brokerage", "brokerage_error_code", "brokerage_error_diag", "the broker"),
    Component("jobdispatcher", "dispatcher_error_code", "dispatcher_error_diag", "the dispatcher"),
    Component("taskbuffer", "task_buffer_error_code", "task_buffer_error_diag", "the server"),
    Component("sup", "sup_error_code", "sup_error_diag", "the supervisor"),
)
TRANS_EXIT: Final = "trans_exit_code"
PAYLOAD_FAILED: Final = 1305
FIELDS: Final = (*(component.code_field for component in COMPONENTS), TRANS_EXIT)

# What the pilots' codes mean, said in our own words.
PILOT_CODES: Final[Mapping[int, str]] = {
    1098: "The worker node ran out of disk space.",
    1099: "An input file could not be copied to the worker node.",
    1104: "The job's work folder grew larger than it may.",
    1110: "The work of the job could not be set up.",
    1133: "No storage was given for the output.",
    1137: "An output file could not be copied to its storage.",
    1144: "The server told the pilot to kill the job.",
    1149: "The transform could not be fetched.",
    1150: "The payload wrote nothing for so long that it was taken for hanging.",
    1165: "The payload ended well, but an expected output file is not there.",
    1171: "An input file's checksum differs.",
    1201: "The batch system asked the job to end.",
    1212: "The payload ran out of memory.",
    1213: "The payload ran longer than the job may.",
    1235: "The job used more memory than it asked for.",
    1246: "The sandbox with the user's code is not there.",
    1305: "The payload ended with an error.",
    1310: "The pilot itself failed.",
    1313: "The pilot cannot talk to the storage.",
    1318: "The pilot could not reach the server.",
    1319: "The pilot itself failed.",
    1320: "The log could not be made.",
    1331: "An input file does not exist at its storage.",
    1349: "The pilot was started with arguments that it does not know.",
}


@dataclass(frozen=True, slots=True)
class JobError:
    """The main error of a job: `sentence` is for people, `detail` is what the part itself said."""

    component: str
    code: str
    sentence: str
    detail: str

    @property
    def key(self) -> str:
        return f"{self.component}:{self.code}"


def main_error(values: Mapping[str, Any]) -> JobError | None:
    """The error that best explains a failed job, from its fields by name; None when no part reports one.

    The payload's own code explains more than the pilot's word that the payload failed (1305), so the pilot comes last
    there; otherwise the parts are asked in the order of COMPONENTS.
    """
    found = [part for part in COMPONENTS if values.get(part.code_field)]
    if values.get("pilot_error_code") == PAYLOAD_FAILED and len(found) > 1:
        found.append(found.pop(0))
    exit_code = str(values.get(TRANS_EXIT) or "").strip()
    has_exit = exit_code not in ("", "0")
    if found and not (found[0].name == "pilot" and values["pilot_error_code"] == PAYLOAD_FAILED and has_exit):
        part = found[0]
        code = int(values[part.code_field])
        detail = str(values.get(part.diag_field) or "")
        return JobError(part.name, str(code), _sentence(part, code, detail), detail)
    if has_exit:
        detail = str(values.get("exe_error_diag") or values.get("pilot_error_diag") or "")
        return JobError("payload", exit_code, f"The payload ended with exit code {exit_code}.", detail)
    return None


def _sentence(part: Component, code: int, detail: str) -> str:
    if part.name == "pilot" and abs(code) in PILOT_CODES:
        return PILOT_CODES[abs(code)]
    if part.name == "exe":
        return f"The payload ended with exit code {code}."
    if detail:
        first = detail.strip().splitlines()[0][:200]
        return first if first.endswith((".", "!", "?")) else f"{first}."
    return f"{part.title.capitalize()} reported code {code}."
