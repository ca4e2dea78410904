"""Jobs that bring a user's sandbox, run by real pilots: built, run from the library, and preprocessing."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from urllib.parse import quote

from tests.lacking import needs_program
from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import Site

ELSEWHERE = "https://panda.example:25443"
"""What the user's client thought the site's address to be; worker nodes see it under another one."""
PROGRAM = """#include <stdio.h>
int main(int count, char **words) { int c, lines = 0; FILE *in = fopen(words[1], "r");
  while ((c = fgetc(in)) != EOF) lines += c == 10; printf("%d\\n", lines); return 0; }
"""


def sandbox(**members: str) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for name, text in members.items():
            member = tarfile.TarInfo(name.replace("__", "."))
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return whole.getvalue()


def stored(report: dict[str, object], name: str) -> Path:
    surl: str = json.loads(str(report["job_output_report"]))[name]["surl"]
    return Path(surl.removeprefix("file://localhost"))


def test_one_job_builds_the_library_and_another_runs_it(site: Site, pilots: Pilots) -> None:
    needs_program("cc")
    site.sandboxes["sources.1.tar.gz"] = sandbox(count__c=PROGRAM)
    build = site.offer(
        "build_command",
        f"-i sources.1.tar.gz -o x.lib.tgz --sourceURL {ELSEWHERE} -r . --bexec {quote('cc -o count count.c')}",
        outputs=("x.lib.tgz",),
    )
    assert pilots.run() == 0
    final = site.wait_final(build)
    assert final["job_status"] == "finished", final
    assert "meta_data" not in final
    library = stored(final, "x.lib.tgz").read_bytes()
    run = site.offer(
        "run_command",
        f"""-j "" -r . -l x.lib.tgz -i "['in.txt']" -o "{{'out': 'user.out.1'}}" -p "{quote("./count %IN > out")}" """,
        inputs={"in.txt": b"one\ntwo\n", "x.lib.tgz": library},
        outputs=("user.out.1",),
    )
    assert pilots.run() == 0
    final = site.wait_final(run)
    assert final["job_status"] == "finished", final
    assert stored(final, "user.out.1").read_text() == "2\n"


def test_a_build_that_fails_says_what_the_compiler_said(site: Site, pilots: Pilots) -> None:
    site.sandboxes["sources.1.tar.gz"] = sandbox(build="")
    bad = quote("echo sum.c:1: error: expected a semicolon >&2; exit 1")
    job = site.offer("build_command", f"-i sources.1.tar.gz -o x.lib.tgz --bexec {bad}", outputs=("x.lib.tgz",))
    pilots.run()
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"], final["exe_error_code"]) == ("failed", 1305, 1)


def test_a_sandbox_that_the_site_does_not_keep_fails_the_job_with_its_own_code(site: Site, pilots: Pilots) -> None:
    job = site.offer("run_command", f"-a jobO.1.tar.gz --sourceURL {ELSEWHERE} -- true")
    pilots.run()
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"], final["exe_error_code"]) == ("failed", 1246, 0)
    assert "jobO.1.tar.gz could not be fetched" in final["pilot_error_diag"]


def test_a_sandbox_that_leads_out_of_the_work_folder_is_refused(site: Site, pilots: Pilots) -> None:
    site.sandboxes["jobO.1.tar.gz"] = sandbox(**{"____/escaped": "x"})
    job = site.offer("run_command", f"-a jobO.1.tar.gz --sourceURL {ELSEWHERE} -- touch ran")
    pilots.run()
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1110)
    assert "leads out of the work folder" in final["pilot_error_diag"]
    assert not (pilots.work / "escaped").exists()


def test_what_preprocessing_found_is_reported_with_its_end(site: Site, pilots: Pilots) -> None:
    site.sandboxes["jobO.1.tar.gz"] = sandbox(find__sh="""echo '{"INDS": "a.b", "INLFNLIST": ["f1"]}' > results.json""")
    job = site.offer("preprocess_command", f"-a jobO.1.tar.gz --sourceURL {site.url} -p {quote('sh find.sh')}")
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished", final
    assert final["meta_data"] == {"results": {"INDS": "a.b", "INLFNLIST": ["f1"]}}
