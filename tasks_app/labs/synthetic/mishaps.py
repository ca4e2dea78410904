"""Thirty ways in which made-up jobs fail, with the texts that pilots and payloads write. Pure.

In a text {n} stands for a number, {id} for an identifier, {site} and {node} for where the job ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mishap:
    """One kind of failure. Codes are those of the parts of a job; `weight` is how often it comes among its like.

    where  "": anywhere; "hole": on the one node that fails everything it gets; "storage": at queues whose storage is ill;
           "new": only during the last hours
    """

    weight: int
    says: str
    pilot: int | None = None
    exe: int | None = None
    trans: str | None = None
    ddm: int | None = None
    dispatcher: int | None = None
    server: int | None = None
    supervisor: int | None = None
    where: str = ""


MISHAPS: Final = (
    Mishap(120, "Athena crashed: std::bad_alloc in event {n} of run {id}", 1305, 65, "65"),
    Mishap(90, "Payload failed: Fatal error in athena logfile: 'G4Exception in event {n}, track {id}'", 1305, 8, "8"),
    Mishap(60, "Segmentation fault at 0x{id} in libGeoModelKernel.so", 1305, 139, "139"),
    Mishap(50, "TypeError: unsupported operand in /srv/workDir/run_{n}.py, line {n}", 1305, 1, "1"),
    Mishap(40, "No space left on device: /srv/workDir/tmp.{id}", 1098),
    Mishap(70, "Lost heartbeat: the pilot was last heard of {n} s ago", dispatcher=100),
    Mishap(60, "Payload exceeded maximum allowed memory: used {n} kB of 4096000 kB", 1235),
    Mishap(45, "Looping job killed: no output in {n} s", 1150),
    Mishap(40, "Job reached maximum walltime: {n} s", 1213),
    Mishap(35, "Output not found: output._{n}.pool.root.1", 1165),
    Mishap(35, "Failed to stage out user.{n}._{id}.root: connection to {site} timed out after 3600 s", 1137),
    Mishap(45, "Failed to stage in file AOD.{n}._{id}.pool.root.1: no replica can be reached from {site}", 1099),
    Mishap(30, "Adler32 checksum differs: 0x{id} for AOD.{n}._000012.pool.root.1", 1171),
    Mishap(20, "SIGTERM: the batch system at {site} ended the slot", 1201),
    Mishap(16, "Sandbox sources.{id}.tar.gz was not found", 1246),
    Mishap(14, "Setup of release 24.0.{n} failed: cvmfs repository atlas.cern.ch is not there", 1110),
    Mishap(12, "Work folder of {n} kB is too large", 1104),
    Mishap(12, "Log of {n} kB could not be packed", 1320),
    Mishap(10, "File AOD.{n}._{id}.pool.root.1 does not exist at its storage", 1331),
    Mishap(10, "Rucio: rule {id} for the output was refused: quota exceeded by {n} bytes", ddm=200),
    Mishap(9, "Could not add files to dataset user.out.{n}: dataset is closed", ddm=203),
    Mishap(8, "Killed by the server: the task was retried with more memory ({n} MB)", server=106),
    Mishap(8, "Transform could not be fetched from https://cache.example/trf/{id}", 1149),
    Mishap(6, "Pilot failed with an exception: KeyError '{id}'", 1310),
    Mishap(5, "Job was sent twice: attempt {n} was late", supervisor=101),
    Mishap(100, "cvmfs is not mounted on {node}: transport endpoint is not connected", 1110, where="hole"),
    Mishap(20, "Failed to create container on {node}: overlay mount refused (errno {n})", 1305, 64, "64", where="hole"),
    Mishap(70, "Failed to stage in: storage of {site} answered 503 after {n} s", 1099, where="storage"),
    Mishap(30, "Failed to stage out to {site}: permission denied for /dpm/{id}/scratch", 1137, where="storage"),
    Mishap(80, "ConditionsDB: tag CONDBR2-BLKPA-{n} is not known to frontier.example", 1305, 40, "40", where="new"),
)

BATCH_MISHAPS: Final = (
    "Condor HoldReason: Error from slot1_{n}@{node}: memory usage exceeded request_memory",
    "Condor HoldReason: The system macro SYSTEM_PERIODIC_HOLD expression evaluated to TRUE",
    "submission to ce{n}.example failed: globus error 79: connecting to the job manager failed",
    "ARC CE: job {id} vanished from the batch system",
    "slurm: job {n} NODE_FAIL on {node}",
    "token of the submitter has expired {n} s ago",
)
PILOTS: Final = ("3.9.3.12", "3.9.3.12", "3.9.3.12", "3.9.2.41", "3.9.2.41", "3.8.2.6")
"""Versions, as often as they run."""
