import pytest

from brokerage_app.brokers.choosing import broker_of, decide
from brokerage_app.cases.analysis_settings import AnalysisFacts
from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.policy.userthrottle import UserUsage
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid


@pytest.mark.parametrize(
    ("vo", "label", "broker"),
    [
        ("atlas", "managed", "production"),
        ("atlas", "test", "production"),
        ("atlas", "user", "analysis"),
        ("atlas", "panda", "analysis"),
        ("atlas", "other", "generic"),
        ("lab", "user", "generic"),
        ("", "", "generic"),
    ],
)
def test_vo_and_label_choose_the_broker(vo: str, label: str, broker: str) -> None:
    assert broker_of(vo, label, DEFAULTS) == broker


def test_the_configuration_may_choose_another() -> None:
    other = DEFAULTS.having(Row("jedi", "brokerage", "JOB_BROKER_user", "analysis", vo="lab"))
    assert broker_of("lab", "user", other) == "analysis"
    assert (
        broker_of("atlas", "user", DEFAULTS.having(Row("jedi", "brokerage", "JOB_BROKER_user", "nobody"))) == "analysis"
    )


def test_the_broker_of_analysis_is_told_of_the_user() -> None:
    told = DEFAULTS.having(Row("pandaserver", "prio_mgr", "CAP_RUNNING_USER_JOBS", "5", "int"))
    needs = TaskNeeds(vo="atlas", label="user", user="ada")
    grid = Grid(sites={"A": SiteView("A", outputs=("SE",))})
    assert [choice.site for choice in decide(needs, grid, told).chosen] == ["A"]
    facts = AnalysisFacts(usage=UserUsage(running_jobs=6))
    assert decide(needs, grid, told, facts=facts).code == "user_running_jobs"
