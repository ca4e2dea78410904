import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.architecture import (
    QUOTED,
    ArchitectureError,
    Condition,
    CpuSpec,
    GpuSpec,
    Platform,
    faults_of,
    parse,
)
from brokerage_app.vocabulary import versions

NVIDIA = GpuSpec("nvidia")


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        (None, Platform()),
        ("", Platform()),
        (
            "x86_64-centos7-gcc8-opt",
            Platform("x86_64-centos7-gcc8-opt", "", (CpuSpec("x86_64"),), cpu_is_implied=True),
        ),
        (
            "x86_64-slc6-gcc62-opt@base+img#x86_64-intel-avx2&nvidia-kt100",
            Platform(
                "x86_64-slc6-gcc62-opt",
                "base+img",
                (CpuSpec("x86_64", "intel", "avx2"),),
                gpu_spec=GpuSpec("nvidia", "kt100"),
            ),
        ),
        ("#(x86_64|aarch64)", Platform(cpu_specs=(CpuSpec("x86_64"), CpuSpec("aarch64")))),
        ("#&nvidia:vram=15360", Platform(gpu_spec=GpuSpec("nvidia", vram=Condition("==", "15360")))),
        (
            "#&nvidia:model!=.*(P100|V100).*",
            Platform(gpu_spec=GpuSpec("nvidia", ".*(P100|V100).*", excludes_model=True)),
        ),
        (
            "#&nvidia:uarch=Ampere:cuda>=12.0",
            Platform(gpu_spec=GpuSpec("nvidia", version=Condition(">=", "12.0"), microarchitectures=("Ampere",))),
        ),
        ("#aarch64-*-neon", Platform(cpu_specs=(CpuSpec("aarch64", "*", "neon"),))),
        ("@centos7", Platform(base_platform="centos7")),
        ("#&*:driver>=575.0", Platform(gpu_spec=GpuSpec(driver_version=Condition(">=", "575.0")))),
        ("#&nvidia:mem>=1", Platform(gpu_spec=NVIDIA)),
        ("#&nvidia:fast:vram", Platform(gpu_spec=NVIDIA)),
        (
            "#&nvidia:model=.*A100.*:vram==81920:cuda>=12.0:driver!=575.0",
            Platform(
                gpu_spec=GpuSpec(
                    "nvidia",
                    ".*A100.*",
                    vram=Condition("==", "81920"),
                    version=Condition(">=", "12.0"),
                    driver_version=Condition("!=", "575.0"),
                )
            ),
        ),
        ("x86_64-el9&nvidia#x86_64", Platform("x86_64-el9", cpu_specs=(CpuSpec("x86_64"),), gpu_spec=NVIDIA)),
        ("x86_64-el9@#&", Platform("x86_64-el9")),
        ("^x86.*-el9", Platform("^x86.*-el9")),
        ("#x86_64|aarch64-arm", Platform(cpu_specs=(CpuSpec("x86_64"), CpuSpec("aarch64", "arm")))),
        ("#(x86_64|aarch64)-*-avx2", Platform(cpu_specs=(CpuSpec("(x86_64|aarch64)", "*", "avx2"),))),
        ("#&nvidia-A100-SXM4", Platform(gpu_spec=GpuSpec("nvidia", "A100-SXM4"))),
        ("#&-.*a100.*", Platform(gpu_spec=GpuSpec("*", ".*a100.*"))),
    ],
)
def test_the_old_form(text: str | None, platform: Platform) -> None:
    assert parse(text) == platform


@pytest.mark.parametrize(
    ("found", "platform"),
    [
        ({}, Platform()),
        ({"sw_platform": "x86_64-el9-gcc13-opt"}, Platform("x86_64-el9-gcc13-opt")),
        ({"base_platform": "el9", "cpu_specs": [], "gpu_spec": None}, Platform(base_platform="el9")),
        (
            {"cpu_specs": [{"type": "cpu", "arch": "x86_64"}, {"arch": "aarch64", "vendor": "arm", "instr": "neon"}]},
            Platform(cpu_specs=(CpuSpec("x86_64"), CpuSpec("aarch64", "arm", "neon"))),
        ),
        (
            {"gpu_spec": {"vendor": "nvidia", "model": ".*A100.*", "vram": ">=40960", "version": "=12"}},
            Platform(
                gpu_spec=GpuSpec("nvidia", ".*A100.*", vram=Condition(">=", "40960"), version=Condition("==", "12"))
            ),
        ),
        (
            {"gpu_spec": {"model": {"pattern": ".*P100.*", "excl": True}, "driver_version": "< 575.0"}},
            Platform(gpu_spec=GpuSpec("*", ".*P100.*", True, driver_version=Condition("<", "575.0"))),
        ),
        ({"gpu_spec": {"model": {"pattern": ".*P100.*"}}}, Platform(gpu_spec=GpuSpec("*", ".*P100.*"))),
        ({"gpu_spec": {"pattern": ".*P100.*", "excl": True}}, Platform(gpu_spec=GpuSpec())),
        (
            {"gpu_spec": {"microarchitecture": ["Ampere", "Ada Lovelace"]}},
            Platform(gpu_spec=GpuSpec(microarchitectures=("Ampere", "Ada Lovelace"))),
        ),
        ({"gpu_spec": {"microarchitecture": "Ampere"}}, Platform(gpu_spec=GpuSpec(microarchitectures=("Ampere",)))),
        ({"cpu_pref": {"preferred_architecture_level": "x86_64-v3"}}, Platform(preferred_level="x86_64-v3")),
        (
            {"encoded_platform": "x86_64-el9@img#aarch64&nvidia", "sw_platform": "any-el8"},
            Platform("any-el8", "img", (CpuSpec("aarch64"),), gpu_spec=NVIDIA),
        ),
        (
            {"encoded_platform": "x86_64-el9", "gpu_spec": {"vendor": "amd"}},
            Platform("x86_64-el9", "", (CpuSpec("x86_64"),), True, GpuSpec("amd")),
        ),
    ],
)
def test_the_json_form(found: dict[str, object], platform: Platform) -> None:
    assert parse(json.dumps(found)) == platform


def test_json_in_quotes_is_a_platform_that_no_site_has() -> None:
    trap = """'{"gpu_spec": {"vendor": "nvidia"}}'"""
    assert parse(trap).looks_quoted
    assert (parse(trap).gpu_spec, parse(trap).sw_platform) == (None, trap)
    assert not parse(trap[1:-1]).looks_quoted


@pytest.mark.parametrize("text", ["[1]", "12", "null", '"x86_64-el9"', "{"])
def test_json_that_is_no_object_is_read_as_the_old_form(text: str) -> None:
    assert parse(text).sw_platform == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#&nvidia:vram>=lots", "vram: 'lots' is not a number"),
        ("#&nvidia:cuda>=", "cuda: '' is not a number"),
        ('{"gpu_spec": {"vram": 40960}}', "gpu_spec.vram: expected an operator.*got 40960"),
        ('{"gpu_spec": {"version": "12.0"}}', "gpu_spec.version: expected an operator"),
        ('{"gpu_spec": {"version": ">=new"}}', "gpu_spec.version: 'new' is not"),
        ('{"gpu_spec": "nvidia"}', "gpu_spec: expected an object"),
        ('{"gpu_spec": {"model": 3}}', "model: expected a text, got 3"),
        ('{"gpu_spec": {"microarchitecture": 3}}', "gpu_spec.microarchitecture: expected"),
        ('{"cpu_specs": "x86_64"}', "cpu_specs: expected a list"),
        ('{"cpu_specs": ["x86_64"]}', "cpu_specs: expected objects"),
        ('{"sw_platform": 1}', "sw_platform: expected a text"),
        ('{"cpu_pref": "x86_64-v3"}', "cpu_pref: expected an object"),
    ],
)
def test_what_cannot_be_understood_names_the_key(text: str, says: str) -> None:
    with pytest.raises(ArchitectureError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, []),
        ("x86_64-el9-gcc13+cuda-opt@base+docker://a/b:1#(x86_64|aarch64)&nvidia:model!=.*(P100|V100).*", []),
        ("#&nvidia:vram>=lots", ["vram: 'lots' is not a number"]),
        ("""'{"gpu_spec": {}}'""", [QUOTED]),
        ("x86_64-(", ["'x86_64-(' is not a regular expression"]),
        ("#(a+)+b&nvidia:model=[", ["'[' is not a regular expression"]),
        ("#x(?=86)", ["'x(?=86)' looks ahead or behind"]),
    ],
)
def test_what_no_site_could_ever_satisfy_is_known_beforehand(text: str | None, says: list[str]) -> None:
    found = faults_of(text)
    assert len(found) == len(says)
    assert all(part in fault for part, fault in zip(says, found, strict=True))


signs = st.text(alphabet="@#&^:|()-*=<>!x86_64vram. {}\"'", max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["vendor", "model", "vram", "arch", "excl", "pattern"]), inner, max_size=3)
    ),
    max_leaves=6,
)
json_texts = st.dictionaries(
    st.sampled_from(["sw_platform", "base_platform", "cpu_specs", "gpu_spec", "cpu_pref", "encoded_platform"]),
    json_values | signs,
).map(json.dumps)


@given(text=st.text(max_size=60) | signs | json_texts)
def test_nothing_but_an_architecture_error_is_ever_raised(text: str) -> None:
    try:
        found = parse(text)
    except ArchitectureError as exc:
        assert ":" in str(exc)
    else:
        assert isinstance(found, Platform)


word = st.text(alphabet="abcdefgh0123456789_", min_size=1, max_size=8)


@given(platform=word, base=word, arch=word, vendor=word, gpu=word)
def test_the_pieces_of_the_old_form_may_come_in_any_order(
    platform: str, base: str, arch: str, vendor: str, gpu: str
) -> None:
    pieces = [f"@{base}", f"#{arch}-{vendor}", f"&{gpu}"]
    found = parse(platform + "".join(pieces))
    assert found == Platform(platform, base, (CpuSpec(arch, vendor),), gpu_spec=GpuSpec(gpu))
    assert found == parse(platform + "".join(reversed(pieces)))


@pytest.mark.parametrize(
    ("left", "sign", "right", "holds"),
    [
        ("12.10", ">", "12.9", True),
        ("12", "==", "12.0", True),
        ("12.0.0", "!=", "12", False),
        ("575.57.08", ">=", "575.0", True),
        ("575.57.08", "<", "575.57.8", False),
        ("40960", ">=", "40960", True),
        ("v11.2-rc1", "==", "11.2", True),
        ("unknown", "!=", "12", False),
        ("", "<=", "12", False),
        ("0", "<", "0.1", True),
    ],
)
def test_versions_are_compared_number_by_number(left: str, sign: str, right: str, holds: bool) -> None:
    assert versions.compare(versions.parse(left), sign, versions.parse(right)) is holds
