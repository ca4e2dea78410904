"""The rules of the house that tools check: style, types, imports, migrations."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

pytestmark = pytest.mark.timeout(660)
ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def run(*command: str) -> None:
    done = subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_code_has_no_common_mistakes() -> None:
    run("ruff", "check", "--no-cache", ".")


def test_the_formatter_has_its_way() -> None:
    run("ruff", "format", "--no-cache", "--check", ".")
    skipping = re.compile(r"# *fmt: *(skip|off)")
    code = [path for path in ROOT.rglob("*.py") if "migrations" not in path.parts and ".venv" not in path.parts]
    assert [str(path) for path in code if path != Path(__file__) and skipping.search(path.read_text())] == []


def test_types_agree() -> None:
    """What former runs kept is used where it is; to keep it takes a seventh of the time, and a clean environment runs once."""
    run("mypy", *([] if (ROOT / ".mypy_cache").exists() else ["--cache-dir=/dev/null"]))


def test_imports_run_one_way_and_decisions_are_pure() -> None:
    run("lint-imports", "--no-cache")


@pytest.mark.django_db
def test_the_migrations_say_what_the_models_say() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_each_test_has_a_limit_of_time_and_warnings_are_errors(pytestconfig: pytest.Config) -> None:
    assert 0 < float(pytestconfig.getini("timeout")) <= 300 and pytestconfig.getini("timeout_method") == "signal"
    assert pytestconfig.getini("filterwarnings") == ["error"]


@pytest.mark.parametrize("name", ["JobError", "LOG_TYPES", "accounts_named", "CONTAINER_MARK"])
def test_what_many_parts_speak_of_has_one_name_and_one_place(name: str) -> None:
    said = re.compile(rf"^(?:class {name}\b|def {name}\b|{name}(?:: \w+)? =)", re.MULTILINE)
    apps = ("jedisite", "brokerage_app", "tasks_app", "events_app")
    code = [
        path for app in apps for path in (ROOT / app).rglob("*.py") if "gpi" not in path.parts
    ]  # Ganga's names are its own
    assert len([str(path) for path in code if said.search(path.read_text())]) == 1
