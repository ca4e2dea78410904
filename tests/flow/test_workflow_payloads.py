"""Case IV with real payloads: toy events are reconstructed, and what comes out is analysed and stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from jedisite.identity.callers import Caller, Role
from tasks_app.inputs.registering import register_dataset
from tasks_app.models import CatalogueFile
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import submit_workflow
from tests.flow.test_prun import content, run_jobs, site
from tests.tasks_app.running_transforms import TRANSFORMS

pytestmark = pytest.mark.usefixtures("tables")
__all__ = ["site"]
EVENTS = 400
FILES = 3
JDOE = Caller("jdoe", frozenset({Role.USER}))
# Each raw file gives two files of all events, and one of those whose mass is near that of the Z.
RECO = """import sys, numpy as np
events = np.load(sys.argv[1])
np.save("half", events[::2]); np.save("rest", events[1::2]); np.save("near", events[abs(events["mass"] - 91.2) < 2])
for made, name in zip(("half", "rest", "near"), sys.argv[2:]):
    open(name, "wb").write(open(made + ".npy", "rb").read())
"""


@pytest.mark.usefixtures("books")
def test_case_iv_runs_to_its_end(site: Path) -> None:
    raws = [site / f"raw{number}" for number in range(1, FILES + 1)]
    for number, raw in enumerate(raws):
        words = [
            "--first-event",
            str(number * EVENTS),
            "--max-events",
            str(EVENTS),
            "--seed",
            "1",
            "--output",
            str(raw),
        ]
        subprocess.run([sys.executable, TRANSFORMS / "zmumu_generate", *words], cwd=site, check=True, timeout=120)
    register_dataset("lab.raw", "lab", raws)
    (site / "reco.py").write_text(RECO)
    (site / "store").mkdir()
    python, analyse = sys.executable, f"{sys.executable} {TRANSFORMS}/zmumu_reconstruct"
    text = f"""
    job reco001
    stage 1
    repeat i 1..{FILES}
    line
      binary reco
        run {python} {site}/reco.py raw{{i}} reco{{i}}_1 reco{{i}}_2 filt{{i}}
        in raw{{i}} from lab.raw
        out reco{{i}}_1 reco{{i}}_2 filt{{i}} retain
    end
    stage 2
    repeat i 1..{FILES}
    line
      binary recoA
        run {analyse} --inputs reco{{i}}_1,reco{{i}}_2 --output all{{i}}.json
        in reco{{i}}_1 reco{{i}}_2
        out all{{i}}.json
    line
      binary store
        run cp reco{{i}}_1 reco{{i}}_2 {site}/store/
        in reco{{i}}_1 reco{{i}}_2
    line
      binary recoA
        run {analyse} --inputs filt{{i}} --output filt{{i}}.json
        in filt{{i}} retain
        out filt{{i}}.json
    end
    """
    workflow = submit_workflow(as_document(read_definition(text)[0]), JDOE)
    ran = run_jobs(site)
    said = [(site / str(job["PandaID"]) / "said").read_text()[-600:] for job, code in ran if code]
    assert {fact.status.value for fact in package_facts(workflow)} == {"successful"}, said
    assert (len(ran), len(package_facts(workflow))) == (12, 12)
    stored = {path.name for path in (site / "store").iterdir()}
    assert stored == {f"reco{i}_{k}" for i in range(1, FILES + 1) for k in (1, 2)}
    seen = {}
    for kind in ("all", "filt"):
        names = CatalogueFile.objects.filter(lfn__regex=rf"\.{kind}\d\.json$").values_list("lfn", flat=True)
        assert len(names) == FILES
        seen[kind] = sum(sum(json.loads(content(name))["counts"]) for name in names)
    assert 0 < seen["filt"] < seen["all"] < FILES * EVENTS, (
        "the detector loses some, and the filter keeps those near the peak"
    )


@pytest.mark.usefixtures("books")
def test_the_files_of_a_workflow_are_fetched_under_their_base_names(site: Path) -> None:
    first = "job two\nstage\nline\nbinary A\nrun echo 1 > a.txt\nout a.txt\n"
    text = f"{first}line\nbinary B\nrun cat a.txt > b.txt\nin a.txt\nout b.txt"
    workflow = submit_workflow(as_document(read_definition(text)[0]), JDOE)
    with pytest.raises(CommandError, match="has written a file yet"):
        call_command("download", f"user.jdoe.two.{workflow.pk}", to=site / "fetched")
    run_jobs(site)
    call_command("download", f"user.jdoe.two.{workflow.pk}", to=site / "fetched")
    assert {path.name: path.read_text() for path in (site / "fetched").iterdir()} == {"a.txt": "1\n", "b.txt": "1\n"}
