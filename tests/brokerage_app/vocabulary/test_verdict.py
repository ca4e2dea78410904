import pytest

from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.verdict import Choice, Verdict, sentence_of


def skips(*codes: str) -> tuple[Skip, ...]:
    return tuple(Skip(f"S{number}", code, "because") for number, code in enumerate(codes))


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict(), "No site is known."),
        (Verdict(skipped=skips("site_offline")), "The only site was skipped: 1 site offline."),
        (Verdict(skipped=skips("site_offline", "site_offline")), "All 2 sites were skipped: 2 sites offline."),
        (
            Verdict(skipped=skips("queue_full", "queue_full", "low_memory", "low_memory", "no_pilots")),
            "All 5 sites were skipped: 2 low memory, 2 queues full, 1 no pilots.",
        ),
        (
            Verdict(skipped=skips("site_offline", "low_memory", "low_memory")),
            "All 3 sites were skipped: 2 low memory, 1 site offline.",
        ),
        (Verdict((Choice("X", 1.0),)), "1 of 1 site was chosen, X."),
        (
            Verdict((Choice("X", 2.0), Choice("Y", 1.0)), skips("excluded")),
            "2 of 3 sites were chosen, X first; skipped: 1 excluded.",
        ),
    ],
)
def test_sentence(verdict: Verdict, sentence: str) -> None:
    assert verdict.sentence() == sentence


def test_compact_form_has_the_most_frequent_code_first_and_sites_by_name() -> None:
    verdict = Verdict(skipped=(*skips("site_offline", "low_memory"), Skip("A", "low_memory", "x")))
    assert list(verdict.compact().items()) == [("low_memory", ["A", "S1"]), ("site_offline", ["S0"])]
    assert verdict.counts() == {"low_memory": 2, "site_offline": 1}


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict(), "no_site_known"),
        (Verdict((Choice("X", 1.0),), skips("excluded")), ""),
        (Verdict(skipped=skips("site_offline", "low_memory", "low_memory")), "low_memory"),
        (Verdict(skipped=skips("site_offline", "excluded")), "excluded"),
    ],
)
def test_the_code_that_blocks(verdict: Verdict, code: str) -> None:
    assert verdict.code == code


def test_a_stored_verdict_reads_as_the_fresh_one() -> None:
    verdict = Verdict((Choice("X", 2.0),), skips("excluded", "excluded"))
    assert sentence_of(1, {"excluded": 2}, best="X") == verdict.sentence()
