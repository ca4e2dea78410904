"""A process looks for garbage once it has started, and not through what it has imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BEGIN = "from jedisite.processes import garbage; garbage.put_off(); import django; django.setup()"
SAY = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 50_000)"
HEAVY = (
    "cryptography",
    "jwt",
    "requests",
    "rest_framework.serializers",
    "rich.console",
    "yaml",
    "tasks_app.web",
    "tasks_app.inputs.feed",
)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", ["manage.py", "shell", "--no-imports", "-c", SAY]),
        ("jedisite.settings", ["-c", f"import jedisite.wsgi; {SAY}"]),
        ("jedisite.light_settings", ["-c", f"{BEGIN}; {SAY}"]),
    ],
    ids=["a command", "the web server", "a command without the database"],
)
def test_garbage_is_looked_for_among_what_comes_after_the_start(settings: str, words: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    if settings:
        environment["DJANGO_SETTINGS_MODULE"] = settings
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_who_has_not_put_it_off_is_left_alone() -> None:
    words = ["-c", f"from jedisite.processes import garbage; garbage.look_again(); {SAY}"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_a_command_starts_without_what_only_others_need() -> None:
    """Each took 20 to 100 ms of every start, and a site is several processes."""
    words = ["-X", "importtime", "manage.py", "export_sites"]  # whether there are tables, it asks last
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "brokerage_app.grid.grid_storing" in imported, done.stderr
    assert [name for name in HEAVY if name in imported] == []
