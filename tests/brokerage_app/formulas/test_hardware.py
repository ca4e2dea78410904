from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.architecture import ANY, Condition, CpuSpec, GpuSpec, parse
from brokerage_app.formulas.hardware import (
    CpuPart,
    Hardware,
    accepts,
    cpu_accepts,
    gpu_accepts,
    parse_architectures,
    platform_preference,
)
from brokerage_app.vocabulary.gpus import GpuRow

A100 = GpuRow("NVIDIA", "NVIDIA A100-SXM4-40GB", 40960, "Ampere", "12.2", "575.57.08")
V100 = GpuRow("NVIDIA", "NVIDIA V100S-PCIE-32GB", 32768, "Volta", "12.9", "580.82.07")
H100 = GpuRow("NVIDIA", "NVIDIA H100", 81920, "Hopper", "12.9", "580.82.07")
QUEUES = {
    "G": Hardware(gpu_published=True, gpu_rows=(H100,)),
    "H": Hardware(gpu_published=True, gpu_rows=(A100, V100)),
    "I": Hardware(gpu_published=True),
    "none": Hardware(),
}


@pytest.mark.parametrize(
    ("request_", "taken_by"),
    [
        ("#&nvidia", "GH"),
        ("#&*", "GHI"),
        ("#&*:vram>=40960", "G"),
        ("#&*:vram>=32000", "GH"),
        ("#&*:model=.*A100.*", "H"),
        ("#&*:model!=.*V100.*", "G"),
        ("#&*:cuda>=12.8", "G"),
        ("#&*:cuda>=12.0", "GH"),
        ("#&*:uarch=Ampere", "H"),
        ("#&*:uarch=Hopper", "G"),
        ("#&*:uarch=hopper", ""),
        ("#&*:vram!=15360", "GH"),
        ("#&*:vram!=32768", "G"),
        ("#&-.*a100.*", "H"),
        ("#&*:driver>=580", "G"),
        ("#&amd", ""),
        ("#&*:vram==81920", "G"),
        ("#&*:vram<=81920", "GH"),
        ("#&*:vram<81920", "H"),
        ("#&*:vram>32768", "G"),
        ("#&nvidia-nvidia h", "G"),
        ('{"gpu_spec": {"microarchitecture": ["Volta", "Hopper"]}}', "GH"),
    ],
)
def test_which_queues_take_a_request_for_gpus(request_: str, taken_by: str) -> None:
    spec = parse(request_).gpu_spec
    assert spec is not None
    assert "".join(name for name, queue in QUEUES.items() if gpu_accepts(spec, queue) is None) == taken_by


def test_a_value_that_is_not_known_satisfies_no_condition() -> None:
    queue = Hardware(gpu_published=True, gpu_rows=(GpuRow("NVIDIA", "T4"),))
    refused = gpu_accepts(GpuSpec(vram=Condition("!=", "15360")), queue)
    assert refused is not None
    assert refused.detail == "asks for GPUs of memory (MB) !=15360; the site's 1 kind has unknown"


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        (
            "#&*:vram>=40960",
            "no_gpu",
            "asks for GPUs of memory (MB) >=40960; the site's 2 kinds have 32768, 40960",
        ),
        ("#&amd", "no_gpu", "asks for GPUs of vendor amd; the site's 2 kinds have NVIDIA"),
        ("#aarch64", "no_cpu", "asks for CPU aarch64,*,*; the site has arch x86_64, vendor -, instr avx2"),
        (
            "#(x86",
            "bad_architecture",
            "'(x86' is not a regular expression: missing )",
        ),
        (
            "#&*:model=(a+)+b(?=c)",
            "bad_architecture",
            "'(a+)+b(?=c)' looks ahead or behind with (?=, which is not supported",
        ),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_is_there(text: str, code: str, sentence: str) -> None:
    platform = parse(text)
    queue = parse_architectures([{"type": "cpu", "arch": ["x86_64"], "instr": ["avx2"]}, {"type": "gpu"}], (A100, V100))
    refused = accepts(platform.cpu_specs, platform.gpu_spec, queue)
    assert refused is not None
    assert (refused.code, refused.detail) == (code, sentence)


@pytest.mark.parametrize(
    ("text", "published", "accepted"),
    [
        ("#x86_64", {"arch": ["x86_64"]}, True),
        ("#x86_64", {"arch": [""]}, True),
        ("#x86_64", {"arch": ["any"]}, True),
        ("#x86_64", {"arch": ["x86_64", "excl"]}, True),
        ("#x86_64", {"arch": ["arm64"]}, False),
        ("#x86_64", {"vendor": ["intel"]}, False),
        ("#(x86_64|aarch64)", {"arch": ["aarch64"]}, True),
        ("#x86.*", {"arch": ["x86_64"]}, True),
        ("#x86", {"arch": ["x86_64"]}, False),
        ("#(x86_64|aarch64)-*-avx2", {"arch": ["aarch64"], "instr": ["avx2"]}, True),
        ("#*", {"arch": ["x86_64"]}, True),
        ("#*", {"arch": ["x86_64", "excl"]}, False),
        ("#*", {}, True),
        ("#x86_64-intel", {"arch": ["x86_64"], "vendor": ["intel", "excl"]}, True),
        ("#x86_64", {"arch": ["x86_64"], "vendor": ["intel", "excl"]}, False),
        ("", {"arch": ["x86_64"], "vendor": ["intel", "excl"]}, False),
        ("#x86_64-amd", {"arch": ["x86_64"], "vendor": ["intel"]}, False),
        ("#x86_64-amd", {"arch": ["x86_64"], "vendor": ["any"]}, True),
        ("#x86_64-amd", {"arch": ["x86_64"]}, False),
        ("#x86_64-*-avx2", {"arch": ["x86_64"], "instr": ["avx2"]}, True),
        ("#x86_64-*-avx2", {"arch": ["x86_64"]}, False),
        ("#x86_64", {"arch": ["x86_64"], "instr": ["avx512", "excl"]}, False),
        ("x86_64-el9-gcc13-opt", {"arch": ["x86_64"]}, True),
        ("x86_64-el9-gcc13-opt", {"arch": ["aarch64"]}, False),
    ],
)
def test_which_cpus_are_taken(text: str, published: dict[str, list[str]], accepted: bool) -> None:
    platform = parse(text)
    queue = parse_architectures([{"type": "cpu", **published}])
    refused = accepts(platform.cpu_specs, None, queue, cpu_is_implied=platform.cpu_is_implied)
    assert (refused is None) is accepted


def test_a_queue_that_publishes_no_cpu_refuses_only_who_asks_in_so_many_words() -> None:
    asked, implied = parse("#x86_64"), parse("x86_64-el9-gcc13-opt")
    refused = accepts(asked.cpu_specs, None, Hardware())
    assert refused is not None and refused.code == "no_cpu"
    assert accepts(implied.cpu_specs, None, Hardware(), cpu_is_implied=implied.cpu_is_implied) is None


def test_a_queue_of_gpus_is_kept_for_those_who_ask() -> None:
    queue = parse_architectures([{"type": "gpu", "vendor": ["nvidia", "excl"]}], (H100,))
    refused = accepts((), None, queue)
    assert refused is not None and refused.code == "hardware_reserved"
    assert accepts((), GpuSpec("nvidia"), queue) is None
    assert accepts((), None, parse_architectures([{"type": "gpu", "vendor": ["nvidia"]}])) is None


@pytest.mark.parametrize("published", [None, "x", [1, None, {"type": "tpu"}], {"type": "cpu"}])
def test_what_is_not_of_the_expected_form_counts_as_not_published(published: object) -> None:
    assert parse_architectures(published) == Hardware()


def test_a_single_name_may_stand_for_a_list() -> None:
    assert parse_architectures([{"type": "cpu", "arch": "x86_64", "vendor": 3}]).cpu == CpuPart(frozenset({"x86_64"}))


def test_platform_preference() -> None:
    levels = (("x86_64-v2", 65.0), ("x86_64-v3", 35.0))
    assert platform_preference("x86_64-v3", levels) == pytest.approx(1.35)
    assert platform_preference("x86_64-v4", levels) == 1
    assert platform_preference("", levels) == 1


rows = st.lists(
    st.builds(
        GpuRow,
        vendor=st.sampled_from(["NVIDIA", "AMD", ""]),
        model=st.sampled_from(["A100", "V100", "MI250"]),
        vram_mb=st.sampled_from([None, 16384, 40960]),
        microarchitecture=st.sampled_from(["Ampere", "Volta"]),
        version=st.sampled_from([None, "12.0", "12.10", "odd"]),
        driver_version=st.sampled_from([None, "575.57.08", "580"]),
    ),
    max_size=4,
)


def conditions(*texts: str) -> st.SearchStrategy[Condition | None]:
    signs = st.sampled_from(["==", "!=", ">=", "<=", ">", "<"])
    return st.none() | st.builds(Condition, signs, st.sampled_from(texts))


gpu_specs = st.builds(
    GpuSpec,
    vendor=st.sampled_from([ANY, "nvidia", "amd", "("]),
    model=st.sampled_from([ANY, "A100", ".*100", "(a|b)*"]),
    excludes_model=st.just(False),
    vram=conditions("16384", "20000"),
    version=conditions("12", "12.9"),
    driver_version=conditions("575", "580.0"),
    microarchitectures=st.sampled_from([(), ("Ampere",), ("Volta", "Hopper")]),
)
cpu_values = st.none() | st.frozensets(st.sampled_from(["x86_64", "aarch64", "intel", "any", ""]), max_size=3)
cpu_specs = st.builds(CpuSpec, *(st.sampled_from([ANY, "x86_64", "x86.*", "intel", "aarch64"]) for _ in range(3)))


def _hardware(found: Sequence[GpuRow]) -> Hardware:
    return Hardware(gpu_published=True, gpu_rows=tuple(found))


@given(spec=gpu_specs, found=rows, data=st.data())
def test_the_order_of_rows_does_not_matter(spec: GpuSpec, found: list[GpuRow], data: st.DataObject) -> None:
    assert gpu_accepts(spec, _hardware(found)) == gpu_accepts(spec, _hardware(data.draw(st.permutations(found))))


@given(
    spec=gpu_specs,
    found=rows,
    field=st.sampled_from(["vendor", "model", "vram", "version", "driver_version", "microarchitectures"]),
)
def test_who_asks_for_less_of_a_gpu_is_not_refused_more(spec: GpuSpec, found: list[GpuRow], field: str) -> None:
    less = GpuSpec(
        **{
            name: getattr(GpuSpec() if name == field else spec, name)
            for name in ("vendor", "model", "vram", "version", "driver_version", "microarchitectures")
        }
    )
    if gpu_accepts(spec, _hardware(found)) is None:
        assert gpu_accepts(less, _hardware(found)) is None


@given(
    specs=st.lists(cpu_specs, min_size=1, max_size=3),
    part=st.builds(CpuPart, cpu_values, cpu_values, cpu_values),
    more=cpu_specs,
    data=st.data(),
)
def test_who_takes_more_cpus_is_not_refused_more(
    specs: list[CpuSpec], part: CpuPart, more: CpuSpec, data: st.DataObject
) -> None:
    taken = cpu_accepts(tuple(specs), part) is None
    assert (cpu_accepts(tuple(data.draw(st.permutations(specs))), part) is None) == taken
    if taken:
        assert cpu_accepts((*specs, more), part) is None
        assert cpu_accepts(tuple(CpuSpec(spec.arch, ANY, spec.instr) for spec in specs), part) is None
