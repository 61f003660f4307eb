"""Charts are well-formed, and place bars by their ratios."""

import xml.etree.ElementTree as ET

from benchmarks import charts

_SVG = "{http://www.w3.org/2000/svg}"


def _result(name: str, ratio: float) -> dict[str, object]:
    return {"name": name, "ratio": ratio, "target": 1.2, "ours_s": ratio, "official_s": 1.0}


def _bars(*results: dict[str, object]) -> list[ET.Element]:
    root = ET.fromstring(charts.ratios("title", results))
    return [bar for bar in root.iter(f"{_SVG}rect") if bar.get("class") != "card"]


def test_markup_in_a_name_is_text():
    root = ET.fromstring(charts.ratios("a < b", [_result("<script>", 0.5)]))
    assert root.find(f".//{_SVG}script") is None
    assert "<script>" in "".join(root.itertext())


def test_bars_of_faster_and_slower_operations_differ():
    assert [bar.get("class") for bar in _bars(_result("a", 0.5), _result("b", 2.0))] == [
        "faster",
        "slower",
    ]


def test_a_bar_is_longer_the_faster_the_operation_is():
    half, quarter = (
        float(bar.get("width")) for bar in _bars(_result("a", 0.5), _result("b", 0.25))
    )
    assert quarter > half


def test_a_ratio_beyond_the_axis_ends_at_its_edge():
    (bar,) = _bars(_result("a", 1000.0))
    assert float(bar.get("x")) + float(bar.get("width")) < 640


def test_durations_have_three_digits():
    shown = [charts.duration(seconds) for seconds in (1234.5, 1.5, 0.0123, 0.00019, 0.0)]
    assert shown == ["1,234 s", "1.50 s", "12.3 ms", "190 us", "0 us"]
