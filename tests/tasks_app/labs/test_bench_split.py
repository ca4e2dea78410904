from __future__ import annotations

import json

from tasks_app.labs.bench.splitting import run


def test_the_benchmark_cuts_every_file_and_says_how_fast() -> None:
    said: list[str] = []
    result = run([1000, 2500, 7], 1, said.append)
    found = json.loads(json.dumps(result.as_json()))
    assert (found["files"], found["jobs"], found["files_per_job"]) == (1000, 143, 7)
    assert (found["large_files"], found["large_jobs"], found["large_calls"]) == (2500, 358, 3)
    assert found["seconds"] > 0 and found["highest_mb"] > 0
    assert len(said) == 3 and len(result.lines()) == 6
