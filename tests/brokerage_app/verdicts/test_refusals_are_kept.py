"""Every refusal can be stored and read back, with the values that the real rules give it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.brokers import analysis_job, choosing, generic, production_job
from brokerage_app.brokers.production_job import ProductionSettings
from brokerage_app.cases.analysis_settings import AnalysisFacts, Ended
from brokerage_app.models import Queue, VerdictRecord
from brokerage_app.policy.classes import TaskClass
from brokerage_app.policy.configuration import DEFAULTS
from brokerage_app.policy.userthrottle import Caps, Quota, ShareState, UserUsage, refusal
from brokerage_app.verdicts.records import Decided, keep
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView, UserJobs
from brokerage_app.vocabulary.skip import Skip, plain
from brokerage_app.vocabulary.snapshot import Grid, Link, Nucleus
from brokerage_app.vocabulary.verdict import Verdict
from jedisite import refusals
from tests.brokerage_app.brokers import test_analysis_broker as analysis
from tests.brokerage_app.brokers import test_generic_broker as generics
from tests.brokerage_app.brokers import test_production_job as production
from tests.brokerage_app.brokers import test_task_broker as nuclei
from tests.brokerage_app.grids import NUCLEUS, SHARE, TYPE, dataset, grid, queue

ALONE, NEEDS = production.ALONE, production.NEEDS
TASK = 20_000_001
X86 = "x86_64-el9-gcc13-opt"
ATHENA = replace(ALONE, trans_home="Athena-24.0.1", architecture=X86)


def software(**parts: Any) -> SiteView:
    return queue(
        "Q",
        releases=("AUTO",),
        software={"cmtconfigs": [X86], "containers": [], "cvmfs": ["atlas"], "tags": [], **parts},
    )


CPU = [{"type": "cpu", "arch": ["x86_64"], "instr": ["avx2"], "vendor": ["intel"]}]
PRODUCTION: list[tuple[TaskNeeds, Grid]] = [
    # Software and hardware: what is asked and what is published are values of their own kinds.
    (replace(ATHENA, trans_home="Athena-99.9.9"), grid(software(cvmfs=[]))),
    (replace(ATHENA, architecture="aarch64-.+-opt"), grid(software(containers=["any"]))),
    (replace(ATHENA, container="docker://image:1"), grid(software(containers=["/cvmfs/unpacked", "/cvmfs/other"]))),
    (replace(ATHENA, architecture=f"{X86}#aarch64-arm"), grid(software(architectures=CPU))),
    (replace(ATHENA, architecture=f"{X86}#x86_64&nvidia-A100"), grid(software(architectures=CPU))),
    (replace(ATHENA, architecture=""), grid(software(architectures=[{**CPU[0], "vendor": ["intel", "excl"]}]))),
    (replace(ATHENA, architecture="x86_64-(.+"), grid(software())),
    (ALONE, grid(queue("Q", type="analysis"))),
    (ALONE, grid(queue("Q_TEST"))),
    (replace(ALONE, merging=True, walltime_known=False), grid(queue("Q", max_walltime_s=3600))),
    (NEEDS, grid(queue("Q"), to_nucleus=10_000)),
    (NEEDS, grid(queue("Q"), **{NUCLEUS: {"write_wan": "OFF"}})),
    (NEEDS, grid(queue("Q", "S"), links={"S": Link(queued={"Production Output": 150})})),
    (NEEDS, grid(queue("Q", "S"), links={"S": Link(closeness=-1)})),
    (replace(NEEDS, priority=1000), grid(queue("Q", "S"), links={"S": Link(queued={"Express": 149}, closeness=11)})),
    (NEEDS, grid(production.transferring(2500, 1000))),
    (replace(NEEDS, inputs=(dataset(10, 100, X=None),)), grid(queue("Q", "S"), X={"read_wan": "OFF"})),
    (NEEDS, grid(queue("Q", "S"), S={"write_wan": "OFF"})),
    (NEEDS, grid(queue("Q", "S"), S={"read_wan": "OFF"})),
    (production.reading(250, dataset(100, 100, S=(89, 80), T=None)), grid(production.HERE, production.THERE)),
    (replace(ALONE, inputs=(dataset(10, 100, T=None),)), grid(queue("Q", "S", only_local_data=True), queue("R", "T"))),
    (replace(ALONE, inputs=(dataset(10, 1000, S=(5, 500)),)), grid(queue("Q", "S"))),
    (
        replace(ALONE, inputs=(dataset(10, 1000, T=None),)),
        grid(queue("Q", "S"), T={"read_lan": "OFF", "read_wan": "OFF"}),
    ),
    (ALONE, grid(queue("Q", counts=Counts(running=5, activated=60)))),
    (replace(ALONE, memory_mb=9000), grid(queue("Q", min_memory_mb=20_000))),
    (replace(NEEDS, t1_weight=-1), grid(*(queue(n, NUCLEUS, Counts(running=9)) for n in "AB"), queue("D", "S"))),
    (
        replace(NEEDS, full_chain="only"),
        grid(queue("A", NUCLEUS), queue("D", "S"), nucleus=Nucleus(NUCLEUS, bare="only")),
    ),
    (NEEDS, grid(*(queue(f"Q{n:02}", counts=Counts(running=n)) for n in range(1, 13)))),
    (replace(ALONE, priority=100), grid(*(queue(f"P/{kind}", "S", Counts(), parent="P", jobs={}) for kind in "AB"))),
]


def production_tables() -> Iterator[Verdict]:
    """The verdicts of the tables of worked examples that vary one queue."""
    for table in (production.test_one_queue_of_the_worked_examples, production.test_walltime_of_the_worked_examples):
        for _, needs, more, _ in table.pytestmark[0].args[1]:  # type: ignore[attr-defined]
            yield production_job.broker(needs, grid(queue("Q", **more)))
    for needs, world in PRODUCTION:
        yield production_job.broker(needs, world)
    pledged = queue("Q", counts=Counts(running=100, running_cores=1001), pledged_cores=1000)
    for site in (pledged, replace(pledged, pledged_cores=-1)):
        yield production_job.broker(ALONE, grid(site), production.SHORTAGE)
    yield production_job.broker(ALONE, grid(queue("Q")), locked=["Q"])
    yield production_job.broker(ALONE, grid(queue("Q")), ProductionSettings(min_weight=1e9))
    kinds = {SHARE: {TYPE: Counts(running=5, activated=60), "SCORE": Counts(running=200)}}
    yield production_job.broker(ALONE, grid(replace(queue("Q"), jobs=kinds)))


def analysis_tables() -> Iterator[Verdict]:
    needs, site, world = analysis.needs, analysis.site, analysis.grid
    for _, task, view, more, _ in analysis.RULES:
        yield analysis_job.broker(task, world(view, **more))
    for ended in (Ended(3, 4, 2), Ended(3, 6)):
        # Where all queues fail the task gets its jobs all the same: there is another.
        yield analysis_job.broker(needs(), world(site("A"), site("B")), facts=AnalysisFacts(ended={"A": ended}))
    yield analysis_job.broker(needs(avoided_sites=("A",)), world(site("A"), site("B")))
    queue_users = {f"user{number}": UserJobs(50, 10) for number in range(4)} | {"ada": UserJobs(61, 30)}
    jobs = {analysis.SHARE: {"MCORE": Counts(running=100, activated=260)}}
    yield analysis_job.broker(needs(), world(site(jobs=jobs, users={analysis.SHARE: queue_users}, started_per_h=12.0)))
    calm = analysis.busy("C", Counts(running=90, activated=125))
    yield analysis_job.broker(needs(), world(analysis.busy("A", Counts(running=10, activated=25)), calm))
    yield analysis_job.broker(needs(), world(site("A"), site("B_HOSPITAL")))
    yield analysis_job.broker(needs(inputs=(analysis.DATA,)), world(site("A"), site("B")))
    part = replace(analysis.DATA, replicas={**analysis.DATA.replicas, "SE_B": analysis.Replica(9, 9.0, False)})
    yield analysis_job.broker(
        needs(inputs=(part,)), world(site("A", status="offline"), site("B", only_local_data=True))
    )
    virtual = analysis.InputData(
        "d", 10, 1.0, replicas={"X_VP_DISK": analysis.ALL, "SE_A": analysis.Replica(9, 1.0, False)}
    )
    busy = [
        analysis.busy("V", Counts(running=10, activated=30), inputs=("X_VP_DISK",)),
        analysis.busy("A", Counts(running=10, activated=30)),
        analysis.busy("C", Counts(running=100)),
    ]
    yield analysis_job.broker(needs(inputs=(virtual,)), world(*busy))
    gpus = site(switches={"gpu": ""}, software={"architectures": [{"type": "gpu", "vendor": ["excl"]}]})
    yield analysis_job.broker(needs(architecture=X86), world(gpus))


def users_tables() -> Iterator[Skip]:
    """What stops a task of analysis before any queue is asked."""
    cap = Caps(jobs=1000, cores=4000)
    for usage in (
        UserUsage(running_jobs=1001),
        UserUsage(queued_jobs=2001),
        UserUsage(running_cores=4001),
        UserUsage(queued_cores=8001),
    ):
        yield from filter(None, [refusal(who="ada", usage=usage, caps=cap)])
    state = ShareState(250.0, slots_hi=2500.0)
    for of_class in TaskClass:
        found = refusal(
            who="ada",
            usage=UserUsage(running_jobs=5000),
            caps=Caps(),
            share=analysis.SHARE,
            state=state,
            of_class=of_class,
        )
        yield from filter(None, [found])
    yield from filter(None, [refusal(who="ada", usage=UserUsage(running_jobs=1), caps=Caps(jobs=0))])
    for quota in (Quota(101, 100), Quota(100, 100), Quota(problem="no answer in 10 s")):
        yield from filter(None, [refusal(who="ada", usage=UserUsage(), caps=Caps(), quotas=[quota])])


def nuclei_tables() -> Iterator[Verdict]:
    decide, grid_of, tb = nuclei.decide, nuclei.grid_of, nuclei.TB
    large = nuclei.data(20 * nuclei.MB_A_TB, 100, A=nuclei.part(1, 10.0))
    many = nuclei.data(10.0, 100_000, A=nuclei.part(1, 10.0))
    yield decide(grid=Grid()).verdict
    yield decide(needs=TaskNeeds(nucleus="NOWHERE")).verdict
    yield decide(grid=grid_of("A", nucleus={"state": "INACTIVE"})).verdict
    yield decide(grid=grid_of("A", to_nucleus={"A": {"Production Output": 10**6}})).verdict
    yield decide(gathering=nuclei.Gathering((nuclei.Output(1, "o", "ATLASGROUPDISK"),), group="g")).verdict
    for activity in ("read_wan", "write_wan"):
        yield decide(grid=grid_of("A", states={activity: "OFF"})).verdict
    yield decide(grid=grid_of("A", space_free_gb=1.0, space_expired_gb=0.0, space_total_gb=1000.0 * tb)).verdict
    yield decide(job_check=nuclei.nowhere).verdict
    for one in (large, many):
        yield decide(needs=TaskNeeds(inputs=(one,), io_intensity=1000.0)).verdict
    yield decide(grid=grid_of("A", nucleus={"bare": "only"})).verdict


def all_made() -> dict[str, Skip]:
    """A refusal of each code, as the real rules made it."""
    verdicts = [*production_tables(), *analysis_tables(), *nuclei_tables()]
    for _, needs, site, _ in generics.RULES:
        verdicts.append(generic.broker(needs, [site]))
    verdicts.append(generic.broker(TaskNeeds(), [SiteView("Q", switches={"allowed_processing": "reco|simul"})]))
    verdicts.append(generic.broker(TaskNeeds(), [SiteView("Q", status="standby")]))
    verdicts.append(generic.broker(TaskNeeds(), [SiteView("A", silent_s=540.0, queued=2), SiteView("B")]))
    verdicts.append(choosing.decide(TaskNeeds(failing_builds={"Q": 3}), grid(queue("Q", cores=1)), DEFAULTS))
    made = list(users_tables())
    for verdict in verdicts:
        made += [*verdict.skipped, *([verdict.stopped] if verdict.stopped else [])]
    found: dict[str, Skip] = {}
    for skip in made:
        known = found.get(skip.code)
        # The one whose values are of the most uncommon kinds is the hardest to keep.
        if known is None or _odd(skip) > _odd(known):
            found[skip.code] = skip
    return found


def _odd(skip: Skip) -> int:
    return sum(not isinstance(value, str | int) for value in skip.values)


THROTTLE = {code for code in refusals.all_codes() if code.startswith("throttled_")} | {codes.GENERATION_OFF}
"""These are decisions on groups of tasks, kept with the words of their rules (see the tests of the throttle)."""
WITHOUT_SITE = {codes.NO_SITE_KNOWN, codes.SITE_UNKNOWN}


def registered() -> set[str]:
    return {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.django_db
def test_every_refusal_is_stored_and_read_back_with_values_of_its_own() -> None:
    made = all_made()
    assert registered() - set(made) - THROTTLE - WITHOUT_SITE == set(), "a refusal that no rule of the scenes makes"
    for task, (code, skip) in enumerate(sorted(made.items()), TASK):
        verdict = Verdict(skipped=(replace(skip, site=skip.site or "Q"),))
        number = keep(Decided(task, verdict))
        assert keep(Decided(task, verdict)) == number, "the same again is kept as the same"
        (kept,) = VerdictRecord.objects.get(pk=number).skipped
        assert kept[1:3] == [code, skip.detail]
        assert [str(value) for value in kept[3]] == [str(value) for value in skip.values], code
        assert all(type(k) is type(v) for k, v in zip(kept[3], skip.values, strict=True) if isinstance(v, int | float))
    objects = {code for code, skip in made.items() if any(not isinstance(v, str | int | float) for v in skip.values)}
    assert {"no_release", "no_platform", "no_cpu", "no_gpu", "no_container", "hardware_reserved"} <= objects


@pytest.mark.django_db
def test_page_and_api_of_a_task_show_every_refusal(
    client: Client, api: Callable[..., Client], make_user: Callable[..., Any], make_task: Callable[..., Any]
) -> None:
    task = make_task(status="pending")
    skips = [replace(skip, site=f"Q_{code.upper()}") for code, skip in sorted(all_made().items())]
    Queue.objects.bulk_create([Queue(name=skip.site, site_name="S") for skip in skips])
    keep(Decided(task.id, Verdict(skipped=tuple(skips)), TaskNeeds()))
    (verdict,) = api().get(f"/api/v2/tasks/{task.id}/why/").json()["verdicts"]
    assert {one["site"]: one["sentence"] for one in verdict["skipped"]} == {skip.site: skip.detail for skip in skips}
    client.force_login(make_user())
    page = client.get(f"/tasks/{task.id}/why/?all=1")
    assert page.status_code == 200 and "Q_NO_RELEASE" in page.content.decode()


class Odd:
    def __init__(self, words: str) -> None:
        self.words = words

    def __str__(self) -> str:
        return self.words


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.builds(Odd, st.text()) | st.binary(),
        lambda inner: st.lists(inner) | st.frozensets(st.integers()) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    )
)
def test_no_value_is_beyond_json(value: object) -> None:
    (kept,) = Skip("Q", "low_memory", "{}", (value,)).plain_values
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    assert str(kept) == str(value) and plain(kept) == kept
