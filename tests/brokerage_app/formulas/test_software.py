from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.published_software import faults_of_published, parse_published, parse_sources
from brokerage_app.formulas.software import (
    SoftwareNeeds,
    accepts,
    accepts_on_gpu_queue,
    needs_of_analysis,
    needs_of_production,
    resolved_platform,
)
from brokerage_app.vocabulary.gpus import GpuRow

PLATFORM = "x86_64-slc6-gcc62-opt"
HOME = "Athena-21.0.38"
TAG = {
    "cmtconfig": PLATFORM,
    "container_name": "",
    "project": "Athena",
    "release": "21.0.38",
    "sources": [],
    "tag": "VO-atlas-Athena-21.0.38-x86_64-slc6-gcc62-opt",
}
IMAGE = "logical/img:1"
ALL_TAGS = parse_sources([{"container_name": IMAGE, "sources": ["/cvmfs/unpacked/img1"]}])


def site(**parts: Any):
    return parse_published({"cmtconfigs": [], "containers": [], "cvmfs": [], "tags": [], **parts})


def taken(needs: SoftwareNeeds, **parts: Any) -> bool:
    return accepts(needs, site(**parts), ALL_TAGS) is None


@pytest.mark.parametrize(
    ("home", "kind", "releases"),
    [
        ("Athena-21.0.38", "release", (("Athena", "21.0.38"),)),
        ("AtlasProduction-19.2.1.4", "release", (("AtlasProduction", "19.2.1.4"),)),
        ("Athena-main-2024", "release", (("Athena", "main"),)),
        ("Athena", "release", (("Athena", ""),)),
        ("Athena-rel_3", "nightly", ()),
        ("Athena-2024-05-01T2101", "nightly", ()),
        ("rel_3-1.2.3", "release", (("rel_3", "1.2.3"),)),
    ],
)
def test_kinds_of_production(home: str, kind: str, releases: tuple[tuple[str, str], ...]) -> None:
    needs = needs_of_production(home, PLATFORM)
    assert (needs.kind, needs.releases) == (kind, releases)


@pytest.mark.parametrize(
    ("home", "uses", "kind", "releases"),
    [
        ("AnalysisTransforms-AthAnalysis_21.2.10.0", None, "release", (("AthAnalysis", "21.2.10.0"),)),
        ("AnalysisTransforms", "Atlas-20.7.9", "release", (("AtlasOffline", "20.7.9"),)),
        (
            "AnalysisTransforms-AtlasProduction_20.7.9",
            "Atlas-20.7.9",
            "release",
            (("AtlasOffline", "20.7.9"), ("AtlasProduction", "20.7.9")),
        ),
        ("AnalysisTransforms-AtlasProduction_20.7.9", None, "release", (("AtlasProduction", "20.7.9"),)),
        ("AnalysisTransforms-rel_3", None, "nightly", ()),
        ("AnalysisTransforms-Athena_2024-05-01T2101", None, "nightly", ()),
        ("AnalysisTransforms-Athena_20.7.9", "Atlas-20.7", "nightly", ()),
        ("Athena-24.0.1", None, "release", (("Athena", "24.0.1"),)),
        ("Athena-24.0.1", "Atlas-24.0.1", "release", (("Athena", "24.0.1"),)),
        ("Athena-rel_3", None, "nightly", ()),
        ("AnalysisTransforms", None, "standalone", ()),
        ("", "", "standalone", ()),
        (None, None, "standalone", ()),
    ],
)
def test_kinds_of_analysis(
    home: str | None, uses: str | None, kind: str, releases: tuple[tuple[str, str], ...]
) -> None:
    needs = needs_of_analysis(home, uses, PLATFORM)
    assert (needs.kind, needs.releases) == (kind, releases)


def test_s1_the_platform_is_installed() -> None:
    parts = {"cmtconfigs": [PLATFORM], "cvmfs": ["atlas"]}
    assert taken(needs_of_production(HOME, PLATFORM), **parts)
    assert taken(needs_of_production(HOME, PLATFORM), cmtconfigs=[PLATFORM], cvmfs=["any"])
    assert not taken(needs_of_production(HOME, PLATFORM), cmtconfigs=[PLATFORM], cvmfs=["nightlies"])
    assert not taken(needs_of_production(HOME, f"{PLATFORM}@base"), **parts)
    assert taken(needs_of_production(HOME, f"{PLATFORM}@base"), **parts, containers=["/cvmfs"])


def test_s2_the_release_is_a_tag() -> None:
    assert taken(needs_of_production(HOME, PLATFORM), tags=[TAG])
    assert not taken(needs_of_production("Athena-21.0.39", PLATFORM), tags=[TAG])
    assert not taken(needs_of_production(HOME, f"{PLATFORM}@base"), tags=[TAG], containers=["/cvmfs"])
    assert taken(needs_of_production(HOME, f"{PLATFORM}@base"), tags=[TAG], containers=["any"])


def test_tags_are_asked_also_where_cvmfs_is_mounted() -> None:
    assert taken(needs_of_production(HOME, PLATFORM), tags=[TAG], cvmfs=["atlas"])


def test_s3_and_s4_hardware_comes_first() -> None:
    parts: dict[str, Any] = {"cmtconfigs": [PLATFORM], "cvmfs": ["atlas"]}
    intel = [{"type": "cpu", "arch": ["x86_64"], "vendor": ["intel", "excl"]}]
    assert not taken(needs_of_production(HOME, PLATFORM), **parts, architectures=intel)
    assert taken(needs_of_production(HOME, f"{PLATFORM}#x86_64-intel"), **parts, architectures=intel)
    anything = [{"type": "cpu", "arch": [""]}]
    assert taken(needs_of_production(HOME, f"{PLATFORM}#x86_64"), **parts, architectures=anything)


def test_s5_an_image_under_a_path_of_the_site() -> None:
    image = "/cvmfs/unpacked/img1"
    unpacked = ["/cvmfs/unpacked"]
    assert taken(needs_of_production(HOME, PLATFORM, container=image), containers=unpacked)
    assert not taken(needs_of_production(HOME, PLATFORM, container=image, only_tags=True), containers=unpacked)
    assert not taken(needs_of_production(HOME, PLATFORM, container="docker://img1"), containers=unpacked)
    assert taken(needs_of_production(HOME, PLATFORM, container="docker://img1"), containers=["/cvmfs"])


def test_s6_a_logical_name_stands_for_paths() -> None:
    tag = {**TAG, "container_name": IMAGE, "sources": ["/cvmfs/here/img1"]}
    needs = needs_of_production(HOME, PLATFORM, container=IMAGE)
    only_tags = needs_of_production(HOME, PLATFORM, container=IMAGE, only_tags=True)
    assert taken(needs, containers=["/cvmfs/unpacked"])
    assert not taken(only_tags, containers=["/cvmfs/unpacked", "any"])
    assert taken(only_tags, tags=[tag])
    assert taken(needs_of_production(HOME, PLATFORM, container="/cvmfs/here/img1", only_tags=True), tags=[tag])
    assert accepts(needs, site(containers=["/cvmfs/unpacked"])) is not None


def test_s7_nightlies_need_their_own_part_of_cvmfs() -> None:
    nightly = needs_of_production("Athena-rel_3", PLATFORM)
    assert not taken(nightly, cvmfs=["atlas"], containers=["any"])
    assert taken(nightly, cvmfs=["any"], containers=["any"])
    assert taken(nightly, cvmfs=["nightlies"], cmtconfigs=[PLATFORM])
    assert not taken(nightly, tags=[TAG])


def test_s8_gpus_are_kept_for_those_who_ask() -> None:
    gpu = [{"type": "gpu", "vendor": ["nvidia", "excl"]}]
    refused = accepts(needs_of_production(HOME, PLATFORM), site(cvmfs=["any"], containers=["any"], architectures=gpu))
    assert refused is not None and refused.code == "hardware_reserved"


def test_queues_that_take_any_software_take_no_request_for_hardware() -> None:
    queue = parse_published(None, releases=["ANY"])
    assert accepts(needs_of_production(HOME, PLATFORM), queue) is None
    assert accepts(needs_of_production(HOME, "x86_64-.*-opt"), queue) is None
    assert accepts(needs_of_production(HOME, PLATFORM, container=IMAGE), queue) is None
    codes = [
        refused.code
        for needs in (
            needs_of_production(HOME, "#x86_64"),
            needs_of_production(HOME, "#&nvidia"),
            needs_of_production(HOME, PLATFORM, container=IMAGE, only_tags=True),
        )
        if (refused := accepts(needs, queue)) is not None
    ]
    assert codes == ["no_cpu", "no_gpu", "no_container"]


@pytest.mark.parametrize(("published", "releases"), [(None, ["AUTO"]), (None, []), ("cvmfs", [])])
def test_queues_of_which_nothing_is_known_are_refused(published: Any, releases: list[str]) -> None:
    refused = accepts(needs_of_production(HOME, PLATFORM), parse_published(published, releases=releases))
    assert refused is not None
    assert refused.detail == f"needs Athena 21.0.38 on {PLATFORM}; the site publishes no software"


@pytest.mark.parametrize(
    ("text", "container", "code", "says"),
    [
        ('{"gpu_spec": {"vendor": "nvidia"}}', None, "no_gpu", "asks for GPU vendor nvidia"),
        ("&nvidia-A100", None, "no_gpu", "asks for GPU"),
        ("#x86_64-*-avx2", None, "no_cpu", "asks for CPU"),
        (None, "docker://img:1", "no_container", "needs container docker://img:1; the site publishes no software"),
        (PLATFORM, None, "no_platform", f"needs {PLATFORM}; the site publishes no software"),
    ],
)
def test_of_a_queue_that_publishes_nothing_what_is_missing_is_named(
    text: str | None, container: str | None, code: str, says: str
) -> None:
    """A task that brings its own software needs no release."""
    refused = accepts(needs_of_analysis(None, None, text, container=container), parse_published(None), ALL_TAGS)
    assert refused is not None and refused.code == code and says in refused.detail, refused
    assert "standalone" not in refused.detail and "release" not in refused.detail


def test_without_a_home_production_asks_only_for_hardware_that_it_names() -> None:
    queue = parse_published(None, releases=[])
    assert accepts(needs_of_production("", PLATFORM), queue) is None
    assert accepts(needs_of_production(None, None, container=IMAGE), queue) is None
    refused = accepts(needs_of_production("", "#&nvidia"), site())
    assert refused is not None and refused.code == "no_gpu"
    assert taken(needs_of_production("", "odd-.*x#x86_64"), architectures=[{"type": "cpu", "arch": ["x86_64"]}])


def test_analysis_without_a_release_asks_for_platform_and_hardware() -> None:
    assert taken(needs_of_analysis(None, None, PLATFORM))
    assert taken(needs_of_analysis(None, None, "#x86_64"), architectures=[{"type": "cpu", "arch": ["x86_64"]}])
    assert not taken(needs_of_analysis(None, None, "#x86_64"))
    assert not taken(needs_of_analysis(None, None, "x86_64-el[89]-.*"), cmtconfigs=[PLATFORM])


@pytest.mark.parametrize(
    ("asked", "published", "resolved"),
    [
        ("x86_64-.*-gcc62-opt", ["x86_64-el9-gcc13-opt", PLATFORM, "x86_64-el9-gcc62-opt"], PLATFORM),
        ("x86_64-.*-gcc62-opt@el9", [PLATFORM], f"{PLATFORM}@el9"),
        ("x86_64-.*-gcc62", [PLATFORM], ""),
        (PLATFORM, [PLATFORM], ""),
        ("", [PLATFORM], ""),
    ],
)
def test_an_expression_stands_for_the_first_platform_that_matches_as_a_whole(
    asked: str, published: list[str], resolved: str
) -> None:
    found = resolved_platform(needs_of_production(HOME, asked), site(cmtconfigs=published))
    assert found == resolved


def test_refusals_of_software_say_what_is_there() -> None:
    sentences = {
        refused.code: refused.detail
        for needs, queue in [
            (needs_of_production(HOME, PLATFORM), site(cvmfs=["nightlies"], tags=[{**TAG, "release": "21.0.1"}])),
            (
                needs_of_production(HOME, "x86_64-el[89]-gcc13-opt"),
                site(cvmfs=["any"], containers=["any"], cmtconfigs=[PLATFORM]),
            ),
            (needs_of_production(HOME, PLATFORM, container="/data/x"), site(containers=["/cvmfs/unpacked"])),
            (needs_of_production(HOME, "x86_64-(-opt"), site(cvmfs=["any"], containers=["any"])),
        ]
        if (refused := accepts(needs, queue)) is not None
    }
    assert sentences == {
        "no_release": f"needs Athena 21.0.38 on {PLATFORM} (cvmfs atlas); the site has cvmfs nightlies, 0 platforms, "
        "containers none and 1 tag, none of which fits",
        "no_platform": f"no platform matches x86_64-el[89]-gcc13-opt; the site publishes 1: {PLATFORM}",
        "no_container": "container /data/x begins with none of the site's paths (1: /cvmfs/unpacked) "
        "and is none of its 0 tags",
        "bad_architecture": "'x86_64-(-opt' is not a regular expression: missing )",
    }


def test_an_architecture_that_cannot_be_understood_fits_nowhere() -> None:
    for text in ("#&nvidia:vram>=lots", """'{"gpu_spec": {"vendor": "nvidia"}}'"""):
        for home in (None, HOME):
            refused = accepts(needs_of_production(home, text), parse_published({}, releases=["ANY"]))
            assert refused is not None and refused.code == "bad_architecture"


names = st.sampled_from(["any", "/cvmfs", "atlas", "nightlies", PLATFORM, "x86_64", "intel", "excl", ""])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*TAG, "type", "arch", "vendor"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    published=st.dictionaries(
        st.sampled_from(["cmtconfigs", "containers", "cvmfs", "tags", "architectures"]), json_values
    )
)
def test_whatever_a_site_publishes_there_is_an_answer(published: dict[str, Any]) -> None:
    queue = parse_published(published)
    for needs in (
        needs_of_production(HOME, PLATFORM),
        needs_of_analysis(None, None, "x-.*[0-9]#(a|b)&c", container=IMAGE),
    ):
        refused = accepts(needs, queue, parse_sources(published.get("tags")))
        assert refused is None or refused.detail


@given(
    cvmfs=st.lists(names, max_size=3),
    containers=st.lists(names, max_size=3),
    has_tag=st.booleans(),
    platforms=st.lists(st.sampled_from([PLATFORM, "x86_64-el9-gcc13-opt"]), unique=True),
    data=st.data(),
)
def test_order_does_not_matter_and_more_software_is_not_refused_more(
    cvmfs: list[str], containers: list[str], has_tag: bool, platforms: list[str], data: st.DataObject
) -> None:
    needs = data.draw(
        st.sampled_from(
            [
                needs_of_production(HOME, PLATFORM),
                needs_of_production(HOME, f"{PLATFORM}@b"),
                needs_of_production("Athena-rel_3", PLATFORM),
                needs_of_production(HOME, PLATFORM, container="/cvmfs/x"),
                needs_of_production(HOME, "x86_64-[a-z0-9]+-gcc62-opt"),
            ]
        )
    )
    parts: dict[str, list[Any]] = {
        "cvmfs": cvmfs,
        "containers": containers,
        "cmtconfigs": platforms,
        "tags": [TAG] if has_tag else [],
    }
    accepted = taken(needs, **parts)
    assert taken(needs, **{key: data.draw(st.permutations(value)) for key, value in parts.items()}) == accepted
    if accepted:
        assert taken(needs, **{**parts, "tags": [*parts["tags"], {**TAG, "release": "1"}]})
        assert taken(needs, **{**parts, "cvmfs": [*cvmfs, "any"], "containers": [*containers, "any"]})


def test_a_resolved_expression_counts_as_an_installed_platform() -> None:
    needs = needs_of_production(HOME, "x86_64-.*-gcc62-opt")
    assert taken(needs, cmtconfigs=[PLATFORM], cvmfs=["atlas"])
    assert taken(needs, cmtconfigs=[PLATFORM], tags=[TAG])
    assert not taken(needs, cmtconfigs=["x86_64-el9-gcc13-opt"], cvmfs=["atlas"], containers=["any"])


def test_a_name_with_a_plus_is_found_where_it_is_listed() -> None:
    name = "x86_64-el9-gcc13+cuda-opt"
    assert taken(needs_of_production(HOME, name), cmtconfigs=[name], cvmfs=["atlas"])


def test_an_image_behind_a_plus_does_not_make_an_expression_of_a_platform() -> None:
    needs = needs_of_analysis(None, None, f"{PLATFORM}+docker://a/b:1", container="docker://a/b:1")
    assert taken(needs, containers=["docker://"])


EXAMPLE = {
    "cmtconfigs": ["x86_64-centos7-gcc62-opt", "x86_64-centos7-gcc8-opt", "x86_64-slc6-gcc62-opt"],
    "containers": ["any", "/cvmfs"],
    "cvmfs": ["atlas", "nightlies"],
    "architectures": [
        {"arch": ["x86_64"], "instr": ["avx2"], "type": "cpu", "vendor": ["intel", "excl"]},
        {"type": "gpu", "vendor": ["nvidia", "excl"], "model": ["kt100"], "version": "11.0.3"},
    ],
    "tags": [TAG],
}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{PLATFORM}@base+img#x86_64-intel-avx2&nvidia", None),
        (f"{PLATFORM}#x86_64-intel-avx2&nvidia-kt100", None),
        (f"{PLATFORM}#x86_64-intel&nvidia", None),
        (f"{PLATFORM}#x86_64&nvidia", "no_cpu"),
        (f"{PLATFORM}#x86_64-intel-avx512&nvidia", "no_cpu"),
        (f"{PLATFORM}#x86_64-intel", "hardware_reserved"),
        (f"{PLATFORM}#x86_64-intel&amd", "no_gpu"),
    ],
)
def test_the_example_of_the_document(text: str, code: str | None) -> None:
    queue = parse_published(EXAMPLE, gpu_rows=[GpuRow("NVIDIA", "kt100")])
    refused = accepts(needs_of_production(HOME, text), queue)
    assert (refused.code if refused else None) == code


def test_queues_of_gpus_take_only_who_names_a_platform() -> None:
    gpu = parse_published({"architectures": [{"type": "gpu"}]})
    named = needs_of_analysis(None, None, "x86_64-el9-gcc13-opt&nvidia", container=None)
    assert accepts_on_gpu_queue(needs_of_analysis(None, None, f"{PLATFORM}&*"), gpu) is None
    found = [
        accepts_on_gpu_queue(needs_of_analysis(None, None, "#&*"), gpu),
        accepts_on_gpu_queue(named, parse_published(None, releases=["ANY"])),
        accepts_on_gpu_queue(named, gpu),
        accepts_on_gpu_queue(needs_of_analysis(None, None, "#&*:vram>=x"), gpu),
    ]
    assert [refused and refused.code for refused in found] == [
        "hardware_reserved",
        "no_gpu",
        "no_gpu",
        "bad_architecture",
    ]


def test_what_a_queue_publishes_counts_unless_its_releases_say_otherwise() -> None:
    needs, published = needs_of_production(HOME, PLATFORM), {"tags": [TAG]}
    for releases in ([], ["AUTO"], ["AUTO", "21.0.38"]):
        assert accepts(needs, parse_published(published, releases=releases)) is None, releases
    refused = accepts(needs, parse_published(published, releases=["21.0.38"]))
    assert refused is not None and refused.detail.endswith(
        "; the site publishes software, but its releases are not AUTO"
    )


def test_whoever_writes_software_tags_is_told_what_brokers_would_pass_over() -> None:
    assert faults_of_published({"tags": [TAG], "cvmfs": ["any"], "architectures": [{"type": "gpu"}]}) == []
    assert faults_of_published({"tag": [TAG], "cvmfs": "any", "tags": ["x"]}) == [
        "tag is not known; there are cmtconfigs, containers, cvmfs, tags, architectures",
        "cvmfs is a list of names",
        "tags is a list of maps",
    ]
    assert faults_of_published([]) == [
        "a map with any of cmtconfigs, containers, cvmfs, tags, architectures; this is list"
    ]
