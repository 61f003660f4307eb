"""The benchmark pages say what the committed results say."""

from pathlib import Path

import pytest

from benchmarks import pages

_ROOT = Path(__file__).parents[2]
_COMMITTED = pages.known(_ROOT / "benchmarks")


def _document(**parts: object) -> pages.Document:
    empty = {"versions": {}, "machine": {}, "sections": {}, "memory": {}, "skipped": {}, "runs": {}}
    return {**empty, **parts}


def _result(name: str, ratio: float, **more: object) -> pages.Result:
    return {"name": name, "ratio": ratio, "target": 1.0, "ours_s": ratio, "official_s": 1.0, **more}


def _page(**parts: object) -> str:
    return pages.site_files(_document(**parts))["benchmarks.md"]


@pytest.mark.parametrize("path", sorted(pages.site_files(_COMMITTED)))
def test_site_is_what_the_results_give(path: str):
    """Run `python -m benchmarks.pages` after a change of the results or of the generator."""
    assert (_ROOT / "docs" / path).read_text() == pages.site_files(_COMMITTED)[path]


def test_results_page_is_what_the_results_give():
    assert (_ROOT / "benchmarks/results.md").read_text() == pages.results_page(_COMMITTED)


def test_missed_goals_are_listed_worst_first():
    results = [_result("met", 0.9), _result("missed", 1.5), _result("worst", 3.0)]
    losses = _page(sections={"rows": results}).partition("## Rows")[0]
    assert "Rows: met" not in losses
    assert losses.index("Rows: worst") < losses.index("Rows: missed")


def test_reason_of_a_skipped_section_is_shown():
    assert "- TPC-H on Spark, Iceberg: no jar" in _page(skipped={"tpch iceberg": "no jar"})


def test_peer_of_a_line_is_shown():
    results = [_result("write", 0.5, peer="delta-rs 1.6.6")]
    assert "| write | delta-rs 1.6.6 |" in _page(sections={"embedded": results})


def test_missed_goals_name_their_peers():
    sections = {"spark reading": [_result("scan", 2.0)], "rows": [_result("delete", 3.0)]}
    losses = _page(sections=sections)
    assert "| Spark reading: scan | Parquet on Spark |" in losses
    assert "| Rows: delete | official Lance |" in losses


def test_more_memory_than_official_lance_is_named():
    memory = {"a build": {"target_mb": 9, "ours_mb": 8, "official_mb": 7}}
    assert "- a build: 8 MB, official Lance 7 MB" in _page(memory=memory)


def test_results_are_written_beside_the_committed_ones(tmp_path: Path):
    pages.write(tmp_path / "new", _document(sections={"rows": [_result("a", 0.5)]}))
    assert pages.known(tmp_path / "new")["sections"]["rows"][0]["name"] == "a"
