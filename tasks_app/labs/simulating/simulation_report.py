"""What a simulation says: how far each share was from its part, how busy the slots were, how long urgent jobs waited.

The part that a share should have is worked out here anew from the rows of the tree, not by the code that is looked at:
children divide what their parent has by their values, nobody gets more than it wants, and what one leaves the others share.
So is that of work queues, where what is left is given away in small slabs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from brokerage_app.policy.shares import Share
from brokerage_app.policy.workqueues import QueueRow
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.labs.simulating.simulated_jobs import Outcome, Sample
from tasks_app.labs.simulating.world import DAY, HOUR

WARM_UP_S: Final = DAY
"""The grid is empty at the start, and all its jobs are of the same age; from here on it is looked at."""
SETTLING_S: Final = 8 * HOUR
"""Jobs are never taken off their slots: after a share comes or goes, slots change hands as fast as jobs end, and what was
queued for a campaign that is over runs out at the sites where it waits."""
WINDOW_S: Final = 6 * HOUR
SLABS: Final = 200
MOST_LINKS: Final = 20
"""Links in the report."""

Rows = Sequence[Share] | Sequence[QueueRow]
"""The tree of shares, or work queues."""


def due(rows: Rows, total: float, wanted: Mapping[str, float]) -> dict[str, float]:
    """What each leaf should have of `total` when it could use `wanted`."""
    queues = [row for row in rows if isinstance(row, QueueRow)]
    return (
        fair_of_queues(queues, total, wanted)
        if queues
        else fair([s for s in rows if isinstance(s, Share)], total, wanted)
    )


def fair_of_queues(rows: Sequence[QueueRow], total: float, wanted: Mapping[str, float]) -> dict[str, float]:
    """What each work queue, and each sub queue of a partition, should have of `total` when it could use `wanted`."""

    def below(row: QueueRow) -> list[QueueRow]:
        return [one for one in rows if one.partition_id == row.id]

    def wish(row: QueueRow) -> float:
        return sum(map(wish, below(row))) if row.is_partition else wanted.get(row.name, 0.0)

    found: dict[str, float] = {}

    def divide(amount: float, among: Sequence[QueueRow]) -> None:
        weights = sum(row.share or 0 for row in among)
        has = {row.name: min(amount * (row.share or 0) / weights, wish(row)) for row in among}
        for receivers in ([row for row in among if row.stretchable], among):
            slab = (amount - sum(has.values())) / SLABS
            for _ in range(SLABS):
                hungry = [row for row in receivers if has[row.name] < wish(row)]
                for row in hungry:
                    has[row.name] += slab * (row.share or 0) / sum(one.share or 0 for one in hungry)
        for row in among:
            if row.is_partition:
                divide(has[row.name], below(row))
            else:
                found[row.name] = has[row.name]

    divide(total, [row for row in rows if row.partition_id is None or row.is_partition])
    return found


def fair(rows: Iterable[Share], total: float, wanted: Mapping[str, float]) -> dict[str, float]:
    """What each leaf should have of `total` when it could use `wanted`."""
    children: dict[str | None, list[Share]] = {}
    for row in rows:
        children.setdefault(row.parent or None, []).append(row)

    def wish(share: Share) -> float:
        below = children.get(share.name)
        return sum(map(wish, below)) if below else wanted.get(share.name, 0.0)

    found: dict[str, float] = {}

    def divide(amount: float, among: Sequence[Share]) -> None:
        for share, part in _filled(amount, [(s, float(max(s.value, 0)), wish(s)) for s in among]):
            below = children.get(share.name)
            if below:
                divide(part, below)
            else:
                found[share.name] = part

    divide(total, children.get(None, []))
    return found


def _filled(amount: float, parts: Sequence[tuple[Share, float, float]]) -> list[tuple[Share, float]]:
    """Divide by weight, nobody above its wish, until all is given away or nobody wants more."""
    given = {share.name: 0.0 for share, _, _ in parts}
    open_ones = [part for part in parts if part[2] > 0 and part[1] > 0]
    left = amount
    while open_ones and left > 1e-9:
        weights = sum(weight for _, weight, _ in open_ones)
        full = [(s, w, most) for s, w, most in open_ones if most - given[s.name] <= left * w / weights]
        if not full:
            for share, weight, _ in open_ones:
                given[share.name] += left * weight / weights
            break
        for share, _, most in full:
            left -= most - given[share.name]
            given[share.name] = most
        names = {share.name for share, _, _ in full}
        open_ones = [part for part in open_ones if part[0].name not in names]
    return [(share, given[share.name]) for share, _, _ in parts]


@dataclass(frozen=True, slots=True)
class ShareError:
    """A share in a window: what it had and should have had, in percent of all that ran. `settled`: see SETTLING_S."""

    share: str
    start: float
    had: float
    fair: float
    settled: bool

    @property
    def off_by(self) -> float:
        return abs(self.had - self.fair)


def share_errors(rows: Rows, samples: Sequence[Sample], changes: Sequence[float]) -> list[ShareError]:
    """Errors by share and window. A window is settled when its samples lie long enough behind the last change of demand."""
    found = []
    by_window: dict[tuple[int, bool], list[Sample]] = {}
    for sample in samples:
        if sample.at >= WARM_UP_S and any(sample.executing.values()):
            since = min((sample.at - c for c in changes if c <= sample.at), default=sample.at)
            by_window.setdefault((int(sample.at // WINDOW_S), since >= SETTLING_S), []).append(sample)
    for (window, settled), some in sorted(by_window.items()):
        had: dict[str, list[float]] = {}
        should: dict[str, list[float]] = {}
        for sample in some:
            total = sum(sample.executing.values())
            parts = due(rows, total, sample.wanted)
            for name, amount in sample.executing.items():
                had.setdefault(name, []).append(100 * amount / total)
                should.setdefault(name, []).append(100 * parts[name] / total)
        for name, values in had.items():
            found.append(ShareError(name, window * WINDOW_S, fmean(values), fmean(should[name]), settled))
    return found


def summary(rows: Rows, outcome: Outcome, changes: Sequence[float]) -> dict[str, Any]:
    """The figures of a run."""
    errors = share_errors(rows, outcome.samples, changes)
    settled = [error for error in errors if error.settled]
    worst = max(settled, key=lambda e: e.off_by)
    working = [s for s in outcome.samples if s.waiting > 0 and s.at >= WARM_UP_S]
    waits = {
        share: {p: round(median(w) / 60, 1) for (name, p), w in sorted(outcome.task_waits.items()) if name == share}
        for share in sorted({name for name, _ in outcome.task_waits})
    }
    ordered = [waits[s][p] >= waits[s][q] for s in waits for p in waits[s] for q in waits[s] if p < q]
    return {
        "worst_share_error_pp": round(worst.off_by, 3),
        "worst_share": worst.share,
        "worst_at_day": round(worst.start / DAY, 2),
        "mean_share_error_pp": round(fmean(e.off_by for e in settled), 3),
        "worst_share_error_pp_with_changes": round(max(e.off_by for e in errors), 3),
        "settled_windows_percent": round(100 * len(settled) / len(errors), 1),
        "busy_fraction": round(fmean(s.busy / s.slots for s in working), 5),
        "busy_fraction_worst": round(min(s.busy / s.slots for s in working), 5),
        "priority_inversions": outcome.inversions,
        "by_chance_percent": round(100 * outcome.by_chance / max(outcome.dispatched, 1), 2),
        "median_wait_min": {share: {str(p): w for p, w in of.items()} for share, of in waits.items()},
        "urgent_first": all(ordered),
        "jobs": outcome.dispatched,
        "failed_jobs": outcome.failed,
        "verdicts": outcome.verdicts,
        **_transfers(outcome),
    }


def _transfers(outcome: Outcome) -> dict[str, Any]:
    """What moved; nothing is said of it where nothing moves."""
    if outcome.links is None:
        return {}
    copied, gathered = (outcome.transfer_waits[kind] for kind in (TransferKind.COPY, TransferKind.GATHER))
    return {
        "gb_moved": round(sum(link.gb for link in outcome.links), 1),
        "inputs_copied": len(copied),
        "outputs_gathered": len(gathered),
        "median_wait_for_input_min": round(median(copied) / 60, 1) if copied else None,
        "longest_wait_for_input_min": round(max(copied) / 60, 1) if copied else None,
        "median_wait_for_output_min": round(median(gathered) / 60, 1) if gathered else None,
        "longest_wait_for_output_min": round(max(gathered) / 60, 1) if gathered else None,
        "failed_transfers": sum(link.failed for link in outcome.links),
        "transfers_given_up": sum(link.lost for link in outcome.links),
        "busiest_links": [link._asdict() for link in outcome.links[:MOST_LINKS]],
    }


def plots(rows: Rows, outcome: Outcome, folder: Path) -> list[Path]:
    """Pictures of a run: what shares had and should have had, busy slots, waits. Returns the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    samples = [s for s in outcome.samples if any(s.executing.values())]
    days = [s.at / DAY for s in samples]
    names = list(samples[0].executing)
    should = [due(rows, sum(s.executing.values()), s.wanted) for s in samples]
    figure, axes = pyplot.subplots(len(names), 1, figsize=(10, 2 * len(names)), sharex=True, layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        totals = [sum(s.executing.values()) for s in samples]
        axis.plot(days, [100 * s.executing[name] / t for s, t in zip(samples, totals, strict=True)], label="had")
        axis.plot(days, [100 * d[name] / t for d, t in zip(should, totals, strict=True)], "--", label="should have had")
        axis.set_title(name, loc="left")
        axis.set_ylabel("% of power")
        axis.set_ylim(bottom=0)
    axes[0].legend(loc="upper right")
    axes[-1].set_xlabel("day")
    shares = folder / "shares.svg"
    figure.savefig(shares)
    figure, axis = pyplot.subplots(figsize=(10, 3), layout="constrained")
    axis.plot(days, [100 * s.busy / s.slots for s in samples])
    axis.set(xlabel="day", ylabel="% of slots busy", ylim=(0, 101))
    busy = folder / "busy.svg"
    figure.savefig(busy)
    figure, axis = pyplot.subplots(figsize=(10, 4), layout="constrained")
    labels = sorted(outcome.task_waits)
    axis.boxplot([[w / 60 for w in outcome.task_waits[k]] for k in labels], showfliers=False, orientation="horizontal")
    axis.set_yticks(range(1, len(labels) + 1), [f"{share} {priority}" for share, priority in labels])
    axis.set_xlabel("minutes from making a job to its start")
    waits = folder / "waits.svg"
    figure.savefig(waits)
    pyplot.close("all")
    return [shares, busy, waits]


def write(folder: Path, figures: Mapping[str, Any], pictures: Sequence[Path], *, title: str) -> Path:
    """The report: figures and pictures as one page of Markdown beside the pictures."""
    lines = [f"# {title}", "", "| Figure | Value |", "|---|---|"]
    lines += [
        f"| {name.replace('_', ' ')} | {value} |"
        for name, value in figures.items()
        if not isinstance(value, dict | list)
    ]
    lines += ["", "Median wait of a job from being made to its start, in minutes, by priority:", ""]
    waits = figures["median_wait_min"]
    priorities = sorted({p for of in waits.values() for p in of}, key=int)
    lines += ["| Share | " + " | ".join(priorities) + " |", "|---" * (len(priorities) + 1) + "|"]
    lines += [
        f"| {share} | " + " | ".join(str(of.get(p, "")) for p in priorities) + " |" for share, of in waits.items()
    ]
    lines += _table_of_links(figures.get("busiest_links", ()))
    lines += ["", *(f"![{picture.stem}]({picture.name})" for picture in pictures), ""]
    page = folder / "report.md"
    page.write_text("\n".join(lines))
    return page


def _table_of_links(links: Sequence[Mapping[str, Any]]) -> list[str]:
    if not links:
        return []
    heads = ("From", "To", "MB/s", "GB moved", "Files", "Failed attempts", "Given up", "Most files waiting")
    lines = ["", "Links that moved most:", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return lines + [f"| {' | '.join(str(value) for value in link.values())} |" for link in links]
