import pytest

from brokerage_app.advice.whatif import Conditions, parse
from brokerage_app.brokers import generic
from brokerage_app.cases.case import grid_of
from brokerage_app.formulas.walltime import walltime_at
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid
from tasks_app.explaining.rules.wishes import WISHES, WishError, lines_of

NEEDS = TaskNeeds(
    memory_mb=3000,
    cores=8,
    cpu_hs06s=1e6,
    preassigned_site="A",
    excluded_sites=("B",),
    walltime_known=False,
    inputs=(InputData("data", 5, 50.0, replicas={"SE": Replica(2, 20.0, complete=False)}),),
)


def changed(**given: str) -> TaskNeeds:
    lines = lines_of(given, NEEDS)
    return Conditions(NEEDS, Grid(), Configuration()).under([parse(line) for line in lines]).needs


def test_each_field_changes_what_it_says() -> None:
    assert lines_of({"memory": " "}, NEEDS) == []
    found = changed(memory="1500", cores="1", walltime="2", sites="C, D*", without="*", data="NEW OTHER")
    assert (found.memory_mb, found.cores, walltime_at(found, SiteView("C")), found.walltime_known) == (
        1500,
        1,
        7200,
        True,
    )
    assert (found.preassigned_site, found.included_sites, found.excluded_sites) == ("", ("C", "D*"), ())
    assert found.inputs[0].replicas["NEW"] == Replica(5, 50.0) and found.inputs[0].replicas["SE"].files == 2
    assert changed(data="everywhere").inputs == () and changed(sites="*").included_sites == ()
    assert changed(without="X").excluded_sites == ("X",)
    for wish in WISHES:
        assert wish.now(NEEDS) and wish.now(TaskNeeds())


@pytest.mark.parametrize("given", [{"memory": "-1"}, {"cores": "1.5"}, {"walltime": "9" * 30}, {"sites": "A " * 300}])
def test_what_cannot_be_read_names_the_field(given: dict[str, str]) -> None:
    with pytest.raises(WishError, match=next(iter(given))):
        lines_of(given, NEEDS)


def test_data_that_nobody_reads_cannot_be_elsewhere() -> None:
    with pytest.raises(WishError, match="used no input"):
        lines_of({"data": "SE"}, TaskNeeds())
    assert generic.broker(TaskNeeds(), grid_of([SiteView("A")])).chosen
