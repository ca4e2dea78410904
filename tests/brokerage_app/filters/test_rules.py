import time

from brokerage_app.cases.case import Case, grid_of
from brokerage_app.filters.asking import Rule, sift
from brokerage_app.vocabulary.needs import TaskNeeds, names
from brokerage_app.vocabulary.site_view import Counts, SiteView, Slots, UserJobs
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Nucleus

SITE = SiteView("A")


def test_sites_are_named_with_wildcards_and_no_such_name_stalls_a_decision() -> None:
    assert names(("CERN*", "X"), "CERN-PROD") and not names(("CERN*",), "cern-prod") and names(("B?[1-3]",), "BX2")
    began = time.process_time()
    assert not names(("*a" * 60 + "*X", "(a+)+X", "[a" * 40), "a" * 60) and names(("*a" * 40 + "*X",), "a" * 60 + "X")
    assert time.process_time() - began < 1


def busy(case: Case, site: SiteView) -> Skip | None:
    return Skip(site.name, "queue_full", "{} queued, {} may", (site.queued, 5)) if site.queued > 5 else None


def off(case: Case, site: SiteView) -> Skip | None:
    return Skip(site.name, "site_offline", "off") if site.status != "online" else None


def only_multi_core(case: Case) -> bool:
    return (case.needs.cores or 1) > 1


RULES = (Rule(busy, temporary=True), Rule(off))


def test_an_objection_for_good_comes_before_one_for_the_time_being() -> None:
    sites = [SITE, SiteView("B", queued=9), SiteView("C", queued=9, status="offline"), SiteView("D", status="offline")]
    found = sift(Case(TaskNeeds(), grid_of(sites)), sites, RULES)
    assert [site.name for site in found.kept] == ["A"]
    assert [(site.name, skip.code) for site, skip in found.marked] == [("B", "queue_full")]
    assert [(skip.site, skip.code) for skip in found.out] == [("C", "site_offline"), ("D", "site_offline")]


def test_a_rule_that_the_case_does_not_need_is_not_asked() -> None:
    rules = (Rule(off, asked=only_multi_core),)
    site = SiteView("D", status="offline")
    assert sift(Case(TaskNeeds(cores=1), grid_of([site])), [site], rules).kept == [site]


def test_counts_of_jobs_by_share_and_resource_type() -> None:
    site = SiteView(
        "A", jobs={"X": {"SCORE": Counts(running=3), "MCORE": Counts(running=1, defined=2)}, "Y": {"": Counts(1)}}
    )
    assert site.counts("X") == Counts(running=4, defined=2)
    assert site.counts("X", "MCORE") == Counts(running=1, defined=2)
    assert site.counts() == Counts(running=5, defined=2)
    assert site.counts("Z") == Counts()


def test_jobs_that_a_pass_makes_are_counted() -> None:
    site = SITE.with_jobs(5, share="X", resource_type="SCORE").with_jobs(
        2, share="X", resource_type="SCORE", activated=False
    )
    assert (site.queued, site.defined) == (5, 2)
    assert site.counts("X", "SCORE") == Counts(activated=5, defined=2)
    assert SITE.counts() == Counts()


def test_jobs_that_a_pass_makes_are_counted_for_their_user() -> None:
    site = SITE.with_jobs(5, share="X", user="ada").with_jobs(2, share="X", user="ada").with_jobs(1, share="X")
    assert site.users == {"X": {"ada": UserJobs(7, 0)}}
    assert site.counts("X").activated == 8


def test_slots_are_those_of_the_share_or_of_any() -> None:
    site = SiteView("A", slots=(Slots(None, None, 100), Slots("X", "SCORE", 10), Slots("X", None, 30)))
    assert site.slots_for("X") == 40
    assert site.slots_for("X", "SCORE") == 10
    assert site.slots_for("X", "MCORE") == 30
    assert site.slots_for("Y", "MCORE") == 100
    assert SITE.slots_for("X") is None


def test_queues_that_write_to_the_storage_of_a_nucleus_belong_to_it() -> None:
    own = SiteView("N_1", site="N", inputs=("SE_N", "SE_SHARED"), outputs=("SE_N",))
    near = SiteView("S_1", site="S", outputs=("SE_SHARED",))
    far = SiteView("F_1", site="F", outputs=("SE_F",))
    grid = Grid(
        sites={site.name: site for site in (own, near, far)},
        endpoints={"SE_SHARED": Endpoint("SE_SHARED", site="N")},
        nuclei={"N": Nucleus("N", queues=("N_1",))},
    )
    assert [grid.nucleus_sharing("N").has(site) for site in (own, near, far)] == [True, True, False]
    assert [grid.storage_site(site) for site in (own, near, far)] == ["N", "N", "F"]


def test_usable_space() -> None:
    endpoint = Endpoint("SE", space_free_gb=100, space_expired_gb=20, space_min_free_gb=5, space_unavailable_gb=1)
    assert endpoint.usable_gb == 114
    assert Endpoint("SE").usable_gb is None
    assert Endpoint("SE", states={"read_lan": "TEST"}).is_up("read_lan") is False
    assert Endpoint("SE", states={"read_lan": "ON"}).is_up("read_wan") is True
