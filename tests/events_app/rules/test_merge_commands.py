"""What merge jobs of events run."""

from __future__ import annotations

from events_app.rules.merge_commands import MergeCommand, merge_command, without_merge_tags

TAGGED = (
    "--in a <PANDA_ESMERGE_TRF>Merge_tf.py</PANDA_ESMERGE_TRF> <PANDA_ESMERGE_JOBP>--out\n'b c'</PANDA_ESMERGE_JOBP>"
)


def test_the_tags_say_it() -> None:
    assert merge_command(TAGGED, "http://site/trf/user/sim", ["o"]) == MergeCommand("Merge_tf.py", "--out\n'b c'")
    assert without_merge_tags(TAGGED) == "--in a"


def test_what_jumbo_jobs_pack_together_is_told_apart_by_the_numbers_of_the_files() -> None:
    assert merge_command("", "run_command", ["a", "b"], [8, 7]).parameters == "--files 7,8 a b"


def test_without_tags_it_is_the_transform_of_the_site() -> None:
    own = MergeCommand("http://site/trf/user/merge_events", "'o 1' o2")
    assert merge_command("--in a", "http://site/trf/user/sim", ["o 1", "o2"]) == own
    undefined = TAGGED.replace("Merge_tf.py", "UnDefined")
    assert merge_command(undefined, "http://site/trf/user/sim", ["o 1", "o2"]) == own
    assert merge_command("", "sim", ["o2"]) == MergeCommand("merge_events", "o2")
