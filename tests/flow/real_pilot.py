"""A simulated pilot that reads and writes real files: its inputs where it is told, its outputs at the storage of its job."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from brokerage_app.models import StorageEndpoint
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url, path_of
from tasks_app.dispatch.reports import Report, update_job
from tests.flow.pilot import Job, Pilot, report


class RealPilot(Pilot):
    """Runs nothing: that its inputs are there and are the right ones is all that it looks at."""

    missing_code = 1103

    def work(self, count: int = 100) -> int:
        found = self.fetch(count)
        for job in found:
            self.start(job)
            update_job(self.run(job))
        return len(found)

    def run(self, job: Job) -> Report:
        if errors := unreadable(job, self.missing_code):
            return report(job, "failed", errors=errors)
        return report(job, "finished", outputs=left(job), measures={"cpu_time_s": 10})


def unreadable(job: Job, missing_code: int = RealPilot.missing_code) -> dict[str, Any] | None:
    """The errors of a job whose first bad input is not there, or is another file; None when all are good."""
    for lfn, url, adler in zip(job["inFiles"].split(","), job["surlsIn"], job["checksum"].split(","), strict=True):
        path = path_of(url)
        if not path.exists():
            return {"pilot_error_code": missing_code, "pilot_error_diag": f"{lfn} is not there"}
        if f"ad:{zlib.adler32(path.read_bytes()):08x}" != adler:
            return {"pilot_error_code": 1171, "pilot_error_diag": f"{lfn} is corrupt"}
    return None


def left(job: Job) -> dict[str, dict[str, Any]]:
    """Write the outputs of a job to their endpoints. Returns what its pilot says of them."""
    names, ends = job["outFiles"].split(","), job["ddmEndPointOut"].split(",")
    scopes = [*job["scopeOut"].split(","), *job["scopeLog"].split(",")]
    outputs = {}
    for lfn, end, scope in zip(names, ends, scopes, strict=True):
        place = storage_path(Path(StorageEndpoint.objects.get(name=end).path), scope, lfn)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content := lfn.encode() * 10)
        outputs[lfn] = {
            "guid": lfn[-30:],
            "fsize": len(content),
            "adler32": f"{zlib.adler32(content):08x}",
            "surl": file_url(place),
        }
    return outputs
