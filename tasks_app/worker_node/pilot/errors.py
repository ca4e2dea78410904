"""Why a job failed: PanDA's pilot error codes that we use, and the exception that carries one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

DIAG_LIMIT = 500


class Code(IntEnum):
    """The numbers mean the same as in PanDA's pilot; monitors and retry rules know them."""

    NO_LOCAL_SPACE = 1098
    STAGE_IN_FAILED = 1099
    NO_SUCH_FILE = 1103
    WORK_FOLDER_TOO_LARGE = 1104
    SETUP_FAILED = 1110
    NO_STORAGE = 1133
    STAGE_OUT_FAILED = 1137
    KILLED_BY_SERVER = 1144
    TRANSFORM_NOT_AVAILABLE = 1149
    OUTPUT_MISSING = 1165
    INPUT_CHECKSUM_WRONG = 1171
    SIGTERM = 1201
    UNKNOWN_PAYLOAD_FAILURE = 1220
    OUTPUT_EXISTS = 1221
    REACHED_MAX_TIME = 1213
    EXCEEDED_MAX_MEMORY = 1235
    NO_SANDBOX = 1246
    PAYLOAD_FAILED = 1305
    NO_STORAGE_PROTOCOL = 1313
    SERVER_UNREACHABLE = 1318
    PILOT_PROBLEM = 1319
    LOG_NOT_MADE = 1320
    INPUT_MISSING = 1331
    BAD_ARGUMENTS = 1349


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed. `exit_code` and `exe_diag` are the payload's own words, when it had any.

    `corrupted`: inputs that are not there, or not what they should be.
    """

    code: Code
    diag: str
    exit_code: int = 0
    exe_diag: str = ""
    corrupted: tuple[str, ...] = ()


class JobFailedError(Exception):
    """Ends the work on a job; what happened is in `failure`."""

    def __init__(
        self, code: Code, diag: str, *, exit_code: int = 0, exe_diag: str = "", corrupted: Sequence[str] = ()
    ) -> None:
        super().__init__(diag)
        self.failure = Failure(code, diag[:DIAG_LIMIT], exit_code, exe_diag[:DIAG_LIMIT], tuple(corrupted))
