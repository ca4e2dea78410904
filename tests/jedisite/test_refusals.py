import pytest

import brokerage_app.vocabulary.codes
from events_app.rules import range_refusals
from jedisite import refusals
from tasks_app.domain import attempt_refusal_codes, job_refusal_codes, refusal_codes


@pytest.fixture
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_registry", {})


def _register(code: str = "cellar_locked", title: str = "Cellar locked") -> refusals.Refusal:
    return refusals.register(code, title, "state", severity="info", who_can_fix="user", advice="Find the key.")


def test_a_registered_code_is_found(empty_registry: None) -> None:
    refusal = _register()
    assert refusals.get("cellar_locked") is refusal
    assert refusals.checked("cellar_locked") == "cellar_locked"
    assert refusals.all_codes() == ("cellar_locked",)


def test_one_code_has_one_meaning(empty_registry: None) -> None:
    _register()
    _register()  # the same record again is harmless: a module may be loaded twice
    with pytest.raises(refusals.DuplicateRefusalError, match=r"cellar_locked.*Cellar locked"):
        _register(title="Cellar flooded")


def test_an_unregistered_code_raises(empty_registry: None) -> None:
    with pytest.raises(refusals.UnknownRefusalError, match="no_such_code"):
        refusals.get("no_such_code")


@pytest.mark.parametrize("code", ["", "Upper", "with-dash", "_led", "trailed_", "two__under", "a b"])
def test_codes_are_lower_case_words(empty_registry: None, code: str) -> None:
    with pytest.raises(ValueError, match="lower-case"):
        _register(code)


def test_groups_are_from_the_list(empty_registry: None) -> None:
    with pytest.raises(ValueError, match="weather"):
        refusals.register("rain", "Rain", "weather", severity="info", who_can_fix="user", advice="")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "module", [brokerage_app.vocabulary.codes, refusal_codes, job_refusal_codes, attempt_refusal_codes, range_refusals]
)
def test_every_code_of_a_room_is_registered_under_its_own_name(module: object) -> None:
    found = {name: value for name, value in vars(module).items() if name.isupper() and name != "GATE"}
    assert found, "beside the name of the gate that refuses with them"
    for name, code in found.items():
        assert code == name.lower()
        assert refusals.get(code).title
        assert refusals.get(code).advice.endswith(".")


def test_what_administrators_have_set_is_not_said_to_be_mended_by_nobody() -> None:
    found = [one for one in map(refusals.get, refusals.all_codes()) if "dministrators set" in one.advice]
    assert {"user_running_jobs", "user_queued_jobs", "user_running_cores", "user_queued_cores"} <= {
        one.code for one in found
    }
    assert {one.who_can_fix for one in found} == {"expert"}
