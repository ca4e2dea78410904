"""Hot path: addresses of what other jobs of a task have made, looked at again when it is handed to a job that reads it.

Pilots report them, and ours copies such inputs with its own rights. An address that was stored under other rules, or when
a storage was still one of this machine, is none. What comes from datasets was looked at when these were listed.
"""

from __future__ import annotations

import structlog

from tasks_app.ddm.addresses import Roots, is_its_place
from tasks_app.dispatch.description import DATASET, LFN, SCOPE, SURL, TYPE, File
from tasks_app.params.buildstep import is_library
from tasks_app.refining.offered import MERGES

log = structlog.get_logger(__name__)


def forget_astray(job_id: int, processing_type: str | None, files: list[File]) -> None:
    """Take away the addresses of inputs from jobs of the same task that are not their places: libraries, and what a merge
    job reads. The job then fails for want of an input."""
    merges = processing_type == MERGES
    roots = None
    for file in files:
        surl = file[SURL]
        if surl and ((file[TYPE] == "lib" and is_library(file[DATASET] or "")) or (merges and file[TYPE] == "input")):
            roots = roots or Roots()
            if not is_its_place(surl, file[SCOPE], file[LFN] or "", roots):
                log.warning("dispatch.file_astray", job=job_id, lfn=file[LFN], url=surl)
                file[SURL] = None
