"""The tasks of the demonstration and what must come of each. Pure values: the command submits and verifies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

GENERATED_EVENTS = 40_000
EVENTS_A_JOB = 1_000
FILES_A_RECONSTRUCTION = 4
FIRST_IN_LINE = 2_000
"""Priority of the reconstruction: its jobs go before the rest of the generation, so that both are at work at once."""
Z_MASS_GEV = 91.19
PRIMES_BELOW, PRIMES = 1_000_000, 78_498
BUILD = "cc -O2 -o count count.c || { cp count.sh count && chmod +x count; }"
"""Where there is no C compiler, the same as a script."""
RANGE_FILES, EVENTS_A_RANGE = 2, 250
"""Event files of the task that is processed range by range."""
MERGED_SOURCES = 40
"""Source files of the task whose outputs are merged."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a task must end with. `outputs`: number of output files; `events`: sum of their events; None: not asked."""

    status: str
    outputs: int | None = None
    events: int | None = None
    report: Callable[[list[dict[str, Any]]], list[str]] | None = None
    """Looks into the JSON outputs and says what is wrong with them."""
    error_says: str = ""


@dataclass(frozen=True, slots=True)
class DemoTask:
    name: str
    title: str
    params: dict[str, Any]
    output: str
    expect: Expectation = field(default_factory=lambda: Expectation("done"))


def _log(prefix: str) -> dict[str, Any]:
    return {
        "type": "template",
        "param_type": "log",
        "dataset": f"{prefix}.log",
        "value": f"{prefix}.log.${{SN}}.tgz",
    }


def _params(prefix: str, transform: str, items: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "taskName": prefix,
        "prodSourceLabel": "user",
        "taskType": "anal",
        "processingType": "demo",
        "transPath": transform,
        "vo": "local",
        "ramCount": 1000,
        "ramUnit": "MB",
        "coreCount": 1,
        "log": _log(prefix),
        "jobParameters": items,
        **more,
    }


def _input(value: str, dataset: str) -> dict[str, Any]:
    return {"type": "template", "param_type": "input", "dataset": dataset, "value": value}


def _output(value: str, dataset: str) -> dict[str, Any]:
    return {"type": "template", "param_type": "output", "dataset": dataset, "value": value}


def _number(value: str) -> dict[str, Any]:
    return {"type": "template", "param_type": "number", "value": value}


def tasks(user: str, run: str, sources: int, whole_records: int, sandbox: str, url: str) -> list[DemoTask]:
    """The tasks of one run, parents before children. Dataset and task names hold the run's name.

    `sandbox` is the archive with the program that counts primes, kept by the site at `url`.
    """
    base = f"user.{user}.{run}"
    steps = ("evgen", "reco", "zmass", "sources", "checksums", "primes", "merged", "ranges")
    evgen, reco, merge, code, checks, primes, merged, ranges = (f"{base}.{step}" for step in steps)
    return [
        DemoTask(
            evgen,
            "Z → μμ: event generation",
            _params(
                evgen,
                "zmumu_generate",
                [
                    _number("--first-event ${FIRSTEVENT}"),
                    _number("--max-events ${MAXEVENTS}"),
                    _number("--seed ${RNDMSEED}"),
                    _output(f"--output={evgen}.${{SN}}.npz", f"{evgen}.EVNT"),
                ],
                noInput=True,
                nEvents=GENERATED_EVENTS,
                nEventsPerJob=EVENTS_A_JOB,
            ),
            f"{evgen}.EVNT",
            Expectation("done", GENERATED_EVENTS // EVENTS_A_JOB, GENERATED_EVENTS),
        ),
        DemoTask(
            reco,
            "Z → μμ: reconstruction, while events are still generated",
            _params(
                reco,
                "zmumu_reconstruct",
                [
                    _input("--inputs ${IN/L}", f"{evgen}.EVNT"),
                    _output(f"--output={reco}.${{SN}}.hist.json", f"{reco}.HIST"),
                ],
                nFilesPerJob=FILES_A_RECONSTRUCTION,
                nChunksToWait=1,
                parentTaskName=evgen,
                noWaitParent=True,
                taskPriority=FIRST_IN_LINE,
            ),
            f"{reco}.HIST",
            Expectation("done", None, None, check_all_events),
        ),
        DemoTask(
            merge,
            "Z → μμ: one histogram of all",
            _params(
                merge,
                "merge_histograms",
                [
                    _input("--inputs ${IN/L}", f"{reco}.HIST"),
                    _output(f"--output={merge}.${{SN}}.hist.json", f"{merge}.HIST"),
                ],
                nMaxFilesPerJob=1000,
                nGBPerJob=5,
                parentTaskName=reco,
            ),
            f"{merge}.HIST",
            Expectation("done", 1, None, check_histogram),
        ),
        DemoTask(
            code,
            "Analysis of Python's sources, split by size",
            _params(
                code,
                "analyse_source",
                [
                    _input("--inputs ${IN/L}", f"{base}.PY"),
                    _output(f"--output={code}.${{SN}}.json", f"{code}.JSON"),
                ],
                # The sources are small; what is declared for outputs makes the size of a job count. Scouts leave it.
                nGBPerJob=1,
                nMaxFilesPerJob=1000,
                outDiskCount=900,
                outDiskUnit="MBFixed",
            ),
            f"{code}.JSON",
            Expectation("done", None, None, check_sources(sources)),
        ),
        DemoTask(
            checks,
            "Checksums of files, some of which are broken",
            _params(
                checks,
                "strict_checksum",
                [
                    _input("--inputs ${IN}", f"{base}.RECORDS"),
                    _output(f"--output={checks}.${{SN}}.json", f"{checks}.SUMS"),
                ],
                nFilesPerJob=1,
                maxAttempt=2,
            ),
            f"{checks}.SUMS",
            Expectation("finished", whole_records, None, None, "65"),
        ),
        DemoTask(
            primes,
            "Primes, counted by a program that is compiled first",
            _params(
                primes,
                "run_command",
                [
                    {"type": "constant", "value": "-l ${LIB} -r ."},
                    _number('-p "./count%20${FIRSTEVENT}%20${MAXEVENTS}%20%3E%20primes.json"'),
                    {**_output(f"{primes}.${{SN}}.json", f"{primes}.JSON"), "hidden": True},
                    {"type": "constant", "value": "-o \"{'primes.json': '${OUTPUT0}'}\""},
                ],
                noInput=True,
                nEvents=PRIMES_BELOW,
                nEventsPerJob=PRIMES_BELOW // 4,
                sourceURL=url,
                buildSpec={
                    "archiveName": sandbox,
                    "transPath": "build_command",
                    "jobParameters": f"-i ${{IN}} -o ${{OUT}} --sourceURL ${{SURL}} -r . --bexec {quote(BUILD)}",
                },
            ),
            f"{primes}.JSON",
            Expectation("done", 4, None, check_primes),
        ),
        DemoTask(
            merged,
            "Checksums of sources, merged into one file where the jobs ran",
            _params(
                merged,
                "strict_checksum",
                [
                    _input("--inputs ${IN/L}", f"{base}.PY"),
                    _output(f"--output={merged}.${{SN}}.json", f"{merged}.SUMS"),
                ],
                nFiles=MERGED_SOURCES,
                nFilesPerJob=MERGED_SOURCES // 4,
                mergeOutput=True,
                mergeSpec={"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"},
            ),
            f"{merged}.SUMS",
            Expectation("done", None, None, check_merged),
        ),
        DemoTask(
            ranges,
            "Z → μμ: a table of masses, made range of events by range",
            _params(
                ranges,
                "zmumu_ranges",
                [
                    {**_input("${IN/L}", f"{evgen}.EVNT"), "hidden": True},
                    _output(f"--output={ranges}.${{SN}}.csv", f"{ranges}.CSV"),
                ],
                nFiles=RANGE_FILES,
                nFilesPerJob=1,
                nEventsPerInputFile=EVENTS_A_JOB,
                nEventsPerWorker=EVENTS_A_RANGE,
                parentTaskName=evgen,
            ),
            f"{ranges}.CSV",
            Expectation("done", RANGE_FILES),
        ),
    ]


def check_primes(reports: list[dict[str, Any]]) -> list[str]:
    """Faults of the counts of primes: together they are all below the limit."""
    seen = sum(report["primes"] for report in reports)
    return [] if seen == PRIMES else [f"{seen} primes were found, there are {PRIMES}"]


def check_all_events(reports: list[dict[str, Any]]) -> list[str]:
    """Faults of the partial histograms: together they were made of every event."""
    seen = sum(report["events_in"] for report in reports)
    return [] if seen == GENERATED_EVENTS else [f"{seen} events were reconstructed, not {GENERATED_EVENTS}"]


def check_histogram(reports: list[dict[str, Any]]) -> list[str]:
    """Faults of the merged histogram: every event is in it, and its peak is the Z's mass."""
    faults = []
    for histogram in reports:
        if histogram.get("events_in") != GENERATED_EVENTS:
            faults.append(f"the histogram was made of {histogram.get('events_in')} events, not {GENERATED_EVENTS}")
        filled = sum(histogram["counts"]) + histogram.get("underflow", 0) + histogram.get("overflow", 0)
        if filled != histogram.get("events_selected"):
            faults.append(
                f"the histogram has {filled} entries, but {histogram.get('events_selected')} events were selected"
            )
        mass = peak_of(histogram)
        if abs(mass - Z_MASS_GEV) > 0.5:
            faults.append(f"the peak is at {mass:.2f} GeV, not near {Z_MASS_GEV}")
    return faults


def peak_of(histogram: dict[str, Any]) -> float:
    """Mean (GeV) of the entries within 5 GeV of the highest bin."""
    counts, low, high = histogram["counts"], histogram["low"], histogram["high"]
    width = (high - low) / len(counts)
    centres = [low + (i + 0.5) * width for i in range(len(counts))]
    top = centres[counts.index(max(counts))]
    near = [(c, n) for c, n in zip(centres, counts, strict=True) if abs(c - top) <= 5]
    return float(sum(c * n for c, n in near) / sum(n for _, n in near))


def check_merged(reports: list[Any]) -> list[str]:
    """Faults of the merged lists: together they name every source file once."""
    names = [name for report in reports for part in report for name in part]
    if len(set(names)) == len(names) == MERGED_SOURCES:
        return []
    return [f"{len(set(names))} of {MERGED_SOURCES} files stand in the merged lists, {len(names)} times in all"]


def check_sources(files: int) -> Callable[[list[dict[str, Any]]], list[str]]:
    """A check that every source file was analysed once."""

    def check(reports: list[dict[str, Any]]) -> list[str]:
        seen = sum(report["files"] if isinstance(report["files"], int) else len(report["files"]) for report in reports)
        return [] if seen == files else [f"{seen} source files were analysed, not {files}"]

    return check
