"""Tasks as prun 2.2.0 and pathena submit them: they are refined, generated, and their jobs run with our transforms.

The dictionaries were recorded; only names of sandboxes and datasets are ours. Jobs are fetched and reported as by a pilot,
and what they name is really run, in a folder of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from brokerage_app.grid.local_twin import ensure_local_site
from brokerage_app.models import QueueEndpoint
from jedisite.identity.callers import Caller, Role
from tasks_app.ddm.addresses import storage_path
from tasks_app.dispatch.reports import update_job
from tasks_app.inputs.registering import register_dataset
from tasks_app.models import CatalogueFile, Job, JobFile, Task
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import sandbox_uploads, submitting
from tasks_app.worker_node.pilot.payload import command_line
from tests.flow.driving import ROUNDS, add_queue, agents_turn, jobs, status, task
from tests.flow.pilot import Job as Described
from tests.flow.pilot import Pilot, report
from tests.tasks_app.running_transforms import TRANSFORMS

pytestmark = pytest.mark.usefixtures("books")
RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "prun_tasks.json").read_text())
ADA = Caller("jdoe", frozenset({Role.USER, Role.MANAGER}), manages=frozenset({"g1"}))
QUEUES = ("LOCAL", "Q1", "Q2")
HELLO = """import sys
number, names = sys.argv[1], sys.argv[2].split(",")
text = "".join(open(name).read() for name in names)
open("out.txt", "w").write(f"{number}: {text}")
open("o2.a.root", "w").write(text)
open("o2.b.root", "w").write(number)
"""
MERGE = """#!/bin/sh
out=$1; shift
echo merged $# > "$out"
"""


@pytest.fixture
def site(settings: Any, tmp_path: Path) -> Path:
    """This machine as a site, with two queues more, and a folder of sandboxes that jobs can reach without a web server."""
    settings.JEDI_SANDBOXES = tmp_path / "kept"
    Path(settings.JEDI_STORAGE).mkdir(parents=True, exist_ok=True)
    local = ensure_local_site(tmp_path / "storage", slots=2)
    endpoint = local.endpoints.get().endpoint
    add_queue("BAD", status="offline")  # a task excludes it
    for name in QUEUES[1:]:
        made = add_queue(name, core_count=8, max_memory_mb=32_000, releases=["ANY"])
        QueueEndpoint.objects.create(queue=made, endpoint=endpoint, order_read=1, order_write=1)
    return tmp_path


def give(site: Path, raw: dict[str, Any], **members: str) -> dict[str, Any]:
    """Keep a sandbox of these files, and make the dictionary name it."""
    text = json.dumps(raw)
    name = next(
        w for w in text.replace('"', " ").split() if w.startswith(("jobO.", "sources.")) and w.endswith(".tar.gz")
    )
    (site / "files").mkdir()
    with tarfile.open(site / name, "w:gz") as tar:
        for member, content in members.items():
            path = site / "files" / member.replace("__", ".")
            path.write_text(content)
            path.chmod(0o755)
            tar.add(path, path.name)
    incoming = sandbox_uploads.Incoming("jdoe", name)
    incoming.write((site / name).read_bytes())
    incoming.finish()
    changed: dict[str, Any] = {**raw, "sourceURL": f"file://{site}"}
    return changed


def submit(raw: dict[str, Any]) -> int:
    return submitting.submit(submitting.check(raw, ADA), by="jdoe").task_id


def data(site: Path, name: str, files: int) -> None:
    folder = site / name
    folder.mkdir()
    paths = [folder / f"{name}.{number}.txt" for number in range(files)]
    for path in paths:
        path.write_text(f"{path.name}\n")
    register_dataset(name, "user.jdoe", paths, events=[100] * files)


def kept(job: Described, written: Path) -> str:
    """The address of an output, which is brought to the storage."""
    file = JobFile.objects.get(job_id=job["PandaID"], lfn=written.name)
    place = storage_path(Path(settings.JEDI_STORAGE), file.scope or "", file.lfn)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(written, place)
    return f"file://localhost{place}"


def execute(job: Described, site: Path) -> int:
    """Run what a job names in its own folder. Returns the exit code."""
    folder = site / str(job["PandaID"])
    folder.mkdir()
    for lfn, surl in zip(filter(None, job["inFiles"].split(",")), job["surlsIn"] or [], strict=True):
        (folder / lfn).symlink_to(surl.removeprefix("file://localhost"))
    shutil.copyfile(TRANSFORMS / job["transformation"], folder / job["transformation"])
    argv = [sys.executable, *command_line(job["transformation"], job["jobPars"])]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with (folder / "said").open("w") as said:
        code = subprocess.run(argv, cwd=folder, env=env, stdout=said, stderr=said, check=False, timeout=120).returncode
    if job["logFile"]:
        with tarfile.open(folder / job["logFile"], "w:gz") as tar:
            tar.add(folder / "said", "payload.stdout")
    return code


def run_jobs(site: Path) -> list[tuple[Described, int]]:
    """Agents and pilots in turn until nothing moves. Returns what was run, with exit codes."""
    pilots, ran = [Pilot(site=name) for name in QUEUES], []
    for _ in range(ROUNDS):
        moved = agents_turn()
        found = [(pilot, job) for pilot in pilots for job in pilot.fetch(100)]
        for pilot, job in found:
            pilot.start(job)
            code = execute(job, site)
            ran.append((job, code))
            folder = site / str(job["PandaID"])
            written = [name for name in filter(None, job["outFiles"].split(",")) if (folder / name).is_file()]
            outputs = {
                name: {
                    "guid": f"guid-{job['PandaID']}-{number}",
                    "fsize": (folder / name).stat().st_size,
                    "adler32": f"{zlib.adler32((folder / name).read_bytes()):08x}",
                    "surl": kept(job, folder / name),
                }
                for number, name in enumerate(written)
            }
            errors = {"exe_error_code": code, "pilot_error_code": 1305} if code else {}
            update_job(report(job, "failed" if code else "finished", outputs=outputs, errors=errors))
        if not moved + len(found):
            return ran
    raise AssertionError("the flow still moves")


def content(lfn: str) -> str:
    return Path(CatalogueFile.objects.get(lfn=lfn).url.removeprefix("file://localhost")).read_text()


def why(made: int, ran: list[tuple[Described, int]], site: Path) -> str:
    """For a test that fails: the task's last words and those of its failed jobs."""
    said = [(site / str(job["PandaID"]) / "said").read_text()[-500:] for job, code in ran if code]
    return f"{task(made).status} {task(made).error_dialog} {said}"


def test_a_script_runs_without_a_build_and_without_input(site: Path) -> None:
    raw = give(site, RECORDED["random_numbers"], hello__py="import sys; print('number', sys.argv[1])")
    made = submit(raw)
    ran = run_jobs(site)
    assert status(made) == "done", why(made, ran, site)
    assert [job["transformation"] for job, _ in ran] == ["run_command"] * 2
    outputs = CatalogueFile.objects.filter(dataset__name__startswith="user.jdoe.e2e_out").order_by("lfn")
    assert [f.lfn for f in outputs] == [f"user.jdoe.{made}._00000{n}.out.txt" for n in (1, 2)]
    assert sorted(content(f.lfn) for f in outputs) == ["number 6\n", "number 7\n"]


def test_a_library_is_built_files_are_read_with_a_second_dataset_and_outputs_are_merged(site: Path) -> None:
    reads_the_library = f"open('built').close()\n{HELLO}"
    makes_it = "all:\n\ttouch built\n"
    raw = give(site, RECORDED["built_and_merged"], hello__py=reads_the_library, Makefile=makes_it, merge__sh=MERGE)
    data(site, "user.jdoe.in1", 20)
    data(site, "user.jdoe.sec1", 8)
    made = submit(raw)
    ran = run_jobs(site)
    assert status(made) == "done", why(made, ran, site)
    by_name: dict[str, list[Described]] = {}
    for job, code in ran:
        assert code == 0, why(made, ran, site)
        by_name.setdefault(job["transformation"], []).append(job)
    assert len(by_name["build_command"]) >= 1 and len(by_name["run_command"]) == 4
    read = [name for job in by_name["run_command"] for name in job["inFiles"].split(",") if ".in1." in name]
    assert len(read) == len(set(read)) == 20
    assert "user.jdoe.sec1." in by_name["run_command"][0]["jobPars"]
    assert by_name["merge_command"]
    texts = [content(f.lfn) for f in CatalogueFile.objects.filter(dataset__name__startswith="user.jdoe.t2_out.txt")]
    assert texts and all(text.startswith("merged ") for text in texts)


def test_the_files_that_are_named_by_their_addresses_are_given_to_the_command(site: Path) -> None:
    raw = give(site, RECORDED["pfns"], x='#!/bin/sh\necho "$1"\n')
    raw["jobParameters"] = [
        {**item, "value": item["value"].replace("x%20", "./x%20")} if item.get("value") else item
        for item in raw["jobParameters"]
    ]
    made = submit(raw)
    ran = run_jobs(site)
    assert status(made) == "done", why(made, ran, site)
    said = " ".join((site / str(job["PandaID"]) / "said").read_text() for job, _ in ran)
    assert "file:///a/b" in said and "file:///a/c" in said


SUMS = """import glob, os
text = "".join(open(name).read() for kind in ("lines", "calib") for name in sorted(glob.glob(f"user.jdoe.{kind}.*.txt")))
open("sum.txt", "w").write(f"{os.environ['number']}\\n{text}")
if os.environ["number"] == "7":
    open("extra.txt", "w").write("extra")
"""


def test_groups_of_files_as_prun_loads_them_from_xml_are_jobs_with_outputs_of_their_own(site: Path) -> None:
    raw = give(site, RECORDED["groups"], line__py=SUMS)
    data(site, "user.jdoe.lines", 3)
    data(site, "user.jdoe.calib", 2)
    made = submit(raw)
    ran = run_jobs(site)
    assert status(made) == "done", why(made, ran, site)
    outputs = CatalogueFile.objects.filter(dataset__name__startswith="user.jdoe.sums_all").order_by("lfn")
    said = {f.lfn.partition(".all.")[2]: content(f.lfn).splitlines() for f in outputs}
    assert said == {
        "number7.sum.txt": ["7", "user.jdoe.lines.0.txt", "user.jdoe.lines.2.txt", "user.jdoe.calib.0.txt"],
        "number7.extra.txt": ["extra"],
        "number8.sum.txt": ["8", "user.jdoe.lines.1.txt", "user.jdoe.calib.1.txt"],
    }


def test_pathena_runs_a_program_of_the_sandbox_and_says_when_a_release_is_missing(site: Path) -> None:
    program = "#!/usr/bin/env python3\nimport sys\nopen('HITS.pool.root', 'w').write(' '.join(sys.argv[1:]))\n"
    raw = give(site, RECORDED["pathena_trf"], Sim_tf__py=program)
    data(site, "user.jdoe.in1", 4)
    missing = submit({**raw, "taskName": "user.jdoe.p0/", "maxAttempt": 1, "maxFailure": 1})
    items = [
        {**i, "value": i["value"].replace("Sim_tf", "./Sim_tf")} if "Sim_tf" in i["value"] else i
        for i in raw["jobParameters"]
    ]
    made = submit({**raw, "jobParameters": items})
    ran = run_jobs(site)
    assert status(made) == "done", why(made, ran, site)
    good = Job.objects.filter(task_id=made, status="finished")
    assert {job.transformation for job in jobs(made)} == {"athena_command"} and len(good) == 2
    assert status(missing) == "failed"
    assert {code for job, code in ran if job["taskID"] == missing} == {73}
    job = next(job for job, _ in ran if job["taskID"] == missing)
    assert "Sim_tf.py is not here: it may need an Athena release" in (site / str(job["PandaID"]) / "said").read_text()
    outputs = CatalogueFile.objects.filter(dataset__name__startswith="user.jdoe.p1_EXT0").order_by("lfn")
    words = [content(f.lfn) for f in outputs]
    assert len(words) == 2 and all(
        "--inputEVNTFile=user.jdoe.in1." in text and "--maxEvents=" in text for text in words
    )


def test_a_container_is_refused_before_anything_is_stored(site: Path) -> None:
    raw = give(site, RECORDED["container"], x="")
    with pytest.raises(
        ParamErrors, match=r"^multiStepExec: This asks for payloads .* does not offer\. .*--containerImage"
    ):
        submit(raw)
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nJumboJobs": 2}, "nJumboJobs: It has no effect without nEventsPerWorker"),
        ({"processingType": "pmerge"}, "processingType: pmerge is that of jobs which merge"),
        ({"log": {"value": "user.jdoe.e2e.l,og.${SN}.log.tgz"}}, "user.jdoe.e2e.l,og"),
        ({"jobParameters": "x"}, "jobParameters"),
        ({"again": True}, "is already read as another stream"),
    ],
)
def test_what_the_refiner_would_break_a_task_for_is_said_at_the_door(changes: dict[str, Any], says: str) -> None:
    raw = json.loads(json.dumps(RECORDED["random_numbers"]))
    if changes.pop("again", False):
        number = next(item for item in raw["jobParameters"] if item.get("param_type") == "pseudo_input")
        raw["jobParameters"].append({**number, "value": "${OTHER}"})
    raw["log"].update(changes.pop("log", {}))
    with pytest.raises(ParamErrors, match=says):
        submit({**raw, **changes})
    assert not Task.objects.exists()
