"""What a slot gives to a job: cores, memory, disk, time."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

TOO_FEW_CORES: Final = code(
    "too_few_cores",
    "Not enough cores",
    "resources",
    "user",
    "Ask for fewer cores a job, or allow sites with larger slots.",
    severity="error",
)
MULTI_CORE_ONLY: Final = code(
    "multi_core_only",
    "Multi-core jobs only",
    "resources",
    "user",
    "Ask for more than one core, or allow sites that take single-core jobs.",
    severity="error",
)
LOW_MEMORY: Final = code(
    "low_memory",
    "Not enough memory at the site",
    "resources",
    "user",
    "Ask for less memory, or allow sites with more memory a slot.",
    severity="error",
)
HIGH_MEMORY: Final = code(
    "high_memory",
    "Site is reserved for jobs with more memory",
    "resources",
    "user",
    "Allow sites without a lower limit on memory.",
)
SCRATCH_DISK: Final = code(
    "scratch_disk",
    "Not enough scratch disk",
    "resources",
    "user",
    "Make smaller jobs (fewer files, where they have several), or read the input directly.",
    severity="error",
)
SHORT_WALLTIME: Final = code(
    "short_walltime",
    "Site's time limit is too short",
    "time",
    "user",
    "Make shorter jobs, or allow sites with a longer time limit.",
    severity="error",
)
LONG_WALLTIME: Final = code(
    "long_walltime",
    "Site is reserved for longer jobs",
    "time",
    "user",
    "Make longer jobs, or allow sites without a lower limit on time.",
)
DISK_IO_BUSY: Final = code(
    "disk_io_busy",
    "The site's disks are busy",
    "resources",
    "nobody",
    "Wait until its running jobs read and write less; maxdiskio of the queue is the limit.",
    severity="info",
)
IO_INTENSITY: Final = code(
    "io_intensity",
    "Reads too much for the site",
    "resources",
    "site",
    "Allow other sites, or have max_io_intensity of the queue raised.",
)
TOO_MANY_CORES: Final = code(
    "too_many_cores",
    "Slots have too many cores",
    "resources",
    "user",
    "Raise maxCoreCount of the task, or allow sites with smaller slots.",
)
SHORT_FOR_SCOUTS: Final = code(
    "short_for_scouts",
    "Time limit too short for first jobs",
    "time",
    "nobody",
    "Until the first jobs are measured, only sites that allow a day or more are used.",
    severity="info",
)
SHORT_FOR_UNKNOWN: Final = code(
    "short_for_unknown",
    "Time limit too short for work of unknown length",
    "time",
    "user",
    "State cpuTime of the task, or let scouts measure it; until then only sites that allow a day or more are used.",
)
NUCLEUS_NO_QUEUE: Final = code(
    "nucleus_no_queue",
    "No queue of the nucleus can run the jobs",
    "resources",
    "user",
    "The sentence names what the queues of the nucleus lack: have it corrected, or lower the task's requirements.",
)
