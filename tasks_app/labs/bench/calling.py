"""bench http: the site's own web server and eight clients on loopback, against the same statements without HTTP.

A client makes a new connection for each call, as PanDA's pilots do; what the same clients reach on connections that they
keep is measured, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

from tasks_app.labs.bench import clients, web
from tasks_app.labs.bench.call_loads import CLIENTS, Call, Made, pilot_calls, user_calls
from tasks_app.labs.bench.crowd import crowd
from tasks_app.labs.bench.database import Place
from tasks_app.labs.bench.measuring import Case, Rates, Result, Target, in_turn

TIMES_PANDA = 3.0
SHARE, SHARE_AIM, P99_MS = 0.15, 0.25, 100.0
BULK_TIMES = 4.0
WARM_UP, WARM_UP_LIMIT_S = 8 * CLIENTS, 20.0


def directly(call: str) -> str:
    return f"{call}, directly"


def kept(call: str) -> str:
    return f"{call}, connections kept"


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    """Measure the calls. `sizes`: jobs of a case (4000), milliseconds of a case (400)."""
    number, case_ms = [*sizes, *(4000, 400)[len(sizes) :]]
    seconds = case_ms / 1000
    loads: dict[str, list[clients.Load]] = {}
    spent: dict[str, list[float]] = {}

    with web.running(place) as site:
        calls = [*pilot_calls(web.pilot_token()), *user_calls()]

        def by_http(call: Call, name: str, *, keep: bool) -> float:
            requests = call.requests(call.ready(number), keep)
            before = site.cpu_s()
            seen = clients.load(site.port, requests, call.is_good, CLIENTS, seconds, keep=keep)
            if not seen.good:
                raise RuntimeError(f"{name} was answered with {seen.example!r}")
            spent.setdefault(name, []).append(1e6 * (site.cpu_s() - before) / len(seen.latencies))
            loads.setdefault(name, []).append(seen)
            return seen.rate * call.things

        def without(ready: Callable[[int], range], direct: Callable[[range], Made]) -> float:
            return crowd(CLIENTS, direct(ready(number)), seconds).rate

        cases: dict[str, Case] = {}
        for call in calls:
            if call.direct:
                cases[directly(call.name)] = partial(without, call.ready, call.direct)
            cases[call.name] = partial(by_http, call, call.name, keep=False)
            cases[kept(call.name)] = partial(by_http, call, kept(call.name), keep=True)
        for call in calls:
            _warm_up(site.port, call)
        rates = in_turn(cases, rounds, say)
    result = Result(
        "http", "calls/s", rates, calls[0].name, directly(calls[0].name), {"jobs": number, "case_ms": case_ms}
    )
    found = {call.name: _figures(call, rates, loads, spent) for call in calls}
    result.more = {"clients": CLIENTS, "connections": "a new one for each call", "calls": found}
    say(f"{'call':<20}{'rate':>8}{'p50 ms':>8}{'p99 ms':>8}{'ratio':>7}{'µs of server':>14}   connections kept")
    for call in calls:
        result.targets += _targets(call, found[call.name])
        say(_row(call.name, found[call.name]))
    return result


def _row(name: str, found: dict[str, Any]) -> str:
    def part(first: str) -> str:
        rate, p50, p99, ratio, cpu = (
            found[first + key] for key in ("rate", "p50_ms", "p99_ms", "ratio", "server_cpu_us")
        )
        return f"{rate:>8,.0f}{p50:>8.1f}{p99:>8.1f}{ratio:>7.3f}{cpu:>14,}"

    return f"{name:<20}{part('')}   {part('kept_')}"


def _warm_up(port: int, call: Call) -> None:
    """A few calls, so that each worker has imported what they need."""
    requests = itertools.islice(call.requests(call.ready(WARM_UP), False), WARM_UP)
    clients.load(port, requests, call.is_good, CLIENTS, WARM_UP_LIMIT_S, keep=False)


def _figures(
    call: Call, rates: Rates, loads: dict[str, list[clients.Load]], spent: dict[str, list[float]]
) -> dict[str, Any]:
    def percentile(name: str, percent: float) -> float:
        return round(median(seen.percentile_ms(percent) for seen in loads[name]), 2)

    name, again, raw = call.name, kept(call.name), directly(call.like or call.name)
    found = {
        "rate": round(rates.median(name), 1),
        "p50_ms": percentile(name, 50),
        "p99_ms": percentile(name, 99),
        "ratio": round(rates.ratio(name, raw), 4),
        "direct": round(rates.median(raw), 1),
        "server_cpu_us": round(median(spent[name])),
        "kept_rate": round(rates.median(again), 1),
        "kept_p50_ms": percentile(again, 50),
        "kept_p99_ms": percentile(again, 99),
        "kept_server_cpu_us": round(median(spent[again])),
        "kept_ratio": round(rates.ratio(again, raw), 4),
    }
    return found if call.panda is None else {**found, "times_panda": round(found["rate"] / call.panda, 2)}


def _targets(call: Call, found: dict[str, Any]) -> list[Target]:
    """Figures that are to be reached: by calls that pilots make all the time, and by many heartbeats in one call."""
    if call.things > 1:
        return [Target(f"{call.name}, heartbeats over HTTP / single ones directly", found["ratio"], BULK_TIMES)]
    if call.panda is None:
        return []
    return [
        Target(f"{call.name} over HTTP / directly", found["ratio"], SHARE, SHARE_AIM),
        Target(f"{call.name}: 99 % of the answers within ms", found["p99_ms"], P99_MS, at_most=True),
        Target(f"{call.name}: times today's PanDA server ({call.panda:g}/s)", found["times_panda"], TIMES_PANDA),
    ]
