"""The vendored libraries are the published files, and nothing else lies beside them."""

import hashlib
import re
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "static" / "vendor"
ROW = re.compile(r"\| `(?P<file>[^`]+)` \| `(?P<sha256>[0-9a-f]{64})` \|$", re.MULTILINE)


def test_every_vendored_file_has_the_hash_that_is_written_down() -> None:
    written = {row["file"]: row["sha256"] for row in ROW.finditer((VENDOR / "VENDOR.md").read_text())}
    files = [path for path in VENDOR.rglob("*") if path.is_file() and path.name != "VENDOR.md"]
    found = {path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert found == written


def test_no_page_or_script_of_ours_loads_anything_from_another_host() -> None:
    root = VENDOR.parents[1]
    ours = [*root.glob("templates/**/*.html"), *root.glob("static/css/*"), *root.glob("static/js/*")]
    assert ours
    foreign = re.compile(r"""(src|href|url|@import|action)\s*[=(]?\s*["'(]?\s*(https?:)?//""")
    assert [path.name for path in ours if foreign.search(path.read_text())] == []
