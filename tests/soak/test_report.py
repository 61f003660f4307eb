"""Reports of a run and where they are written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from soak import report
from soak.checker import judge
from soak.history import Final, History
from soak.plan import SoakOptions, plans
from soak.rounds import RoundResult

OPTIONS = SoakOptions(seed=3, seconds=60.0, round_seconds=60.0)


def result(*crashes: str) -> RoundResult:
    """Return a round in which nothing happened but for some crashes."""
    verdict = judge(History(final=Final(crashes=crashes)))
    plan = next(plans(OPTIONS))
    return RoundResult(
        plan=plan, verdict=verdict, kills=2, faults=Counter(), folder=Path("round-0")
    )


def test_results_replace_those_of_the_last_run_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{report.BEGIN}\n\nold\n\n{report.END}\nafter\n")
    report.write_docs(page, OPTIONS, [result()])
    report.write_docs(page, OPTIONS, [result()])
    text = page.read_text()
    assert text.startswith(f"before\n\n{report.BEGIN}\n")
    assert text.endswith(f"\n{report.END}\nafter\n")
    assert text.count("seed 3") == 1
    assert "old" not in text


def test_a_finding_is_reported_with_its_round() -> None:
    assert list(report.findings([result("0.0 ended with 1")])) == [
        "round 1: crash: 0.0 ended with 1"
    ]
    assert "- round 1: crash" in report.page(OPTIONS, [result("0.0 ended with 1")])


def test_a_page_without_findings_says_what_was_looked_for() -> None:
    assert "| lost update | 0 |" in report.page(OPTIONS, [result()])
