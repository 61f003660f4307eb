"""Run a soak: `python -m soak.run --minutes 10 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live

from soak import report
from soak.plan import CREW, SPARK, RoundPlan, SoakOptions, plans, wal_plans
from soak.players import SparkHost
from soak.rounds import RoundResult, play

_HERE = Path(__file__).parent


def main() -> int:
    """Run all rounds, print and record the findings; return 1 if there is one."""
    arguments = _arguments()
    crew = tuple(arguments.crew.split(",")) + (() if arguments.no_spark else (SPARK,))
    options = SoakOptions(
        seed=arguments.seed,
        seconds=60 * arguments.minutes,
        round_seconds=arguments.round_seconds,
        crew=crew,
        stores=tuple(arguments.stores.split(",")),
        has_kills=not arguments.no_kills,
        has_faults=not arguments.no_faults,
        retention_s=arguments.retention,
    )
    root = Path(arguments.folder or tempfile.mkdtemp(prefix="lancelake-soak-"))
    console = Console()
    console.print(
        f"seed {options.seed}, {arguments.minutes:g} minutes, {', '.join(crew)}, in {root}"
    )

    def record(results: Sequence[RoundResult]) -> None:
        (_HERE / "last.md").write_text(report.page(options, results))
        if arguments.docs:
            report.write_docs(_HERE.parent / "docs" / "reliability.md", options, results)

    results = run(options, root, console, record, only=arguments.round, keep=arguments.keep)
    console.print(report.summary(results))
    for finding in report.findings(results):
        console.print(finding, style="red", markup=False, soft_wrap=True)
    return 1 if any(result.verdict.findings for result in results) else 0


def run(
    options: SoakOptions,
    root: Path,
    console: Console,
    record: Callable[[Sequence[RoundResult]], None] = lambda _: None,
    *,
    only: int | None = None,
    keep: bool = False,
) -> list[RoundResult]:
    """Play the rounds of a run, or one of them; what is known is recorded after each."""
    results: list[RoundResult] = []
    rounds = list(plans(options))
    if options.has_wal:
        rounds += wal_plans(options, len(rounds))
    chosen = [plan for plan in rounds if only in (None, plan.number)]
    with (
        _spark(chosen, root) as spark,
        Live(console=console, refresh_per_second=2) as live,
    ):
        for plan in chosen:
            folder = root / f"round-{plan.number}"
            result = play(
                plan,
                folder,
                lambda tally: live.update(report.progress(tally, results, len(rounds))),
                spark=spark,
                keep=keep,
            )
            results.append(result)
            live.console.print(report.line(result))
            record(results)
    return results


@contextmanager
def _spark(plans: Sequence[RoundPlan], root: Path) -> Iterator[SparkHost | None]:
    """Keep a Spark application for as long as a run, if any of its rounds needs one."""
    if not any(SPARK in plan.crew for plan in plans):
        yield None
        return
    host = SparkHost(root)
    try:
        yield host
    finally:
        host.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round-seconds", type=float, default=60.0)
    parser.add_argument("--round", type=int, help="play this round of the run only")
    parser.add_argument("--crew", default=",".join(CREW), help="ours and official releases")
    parser.add_argument("--no-spark", action="store_true", help="no Spark application")
    parser.add_argument("--stores", default="disk,s3", help="disk, s3, or both in turns")
    parser.add_argument("--retention", type=float, default=20.0, help="seconds that versions stay")
    parser.add_argument("--no-kills", action="store_true")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep logs and tables of good rounds")
    parser.add_argument("--folder", help="where logs and tables are written")
    parser.add_argument("--docs", action="store_true", help="write the results into the docs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
