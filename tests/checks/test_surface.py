"""The comparison of public surfaces finds what is missing, unlisted, undocumented or without a unit."""

from __future__ import annotations

from typing import Any

from checks import surface
from checks.surface import Name


def faults(row: dict[str, Any], real: surface.Surface, language: str = "python") -> list[str]:
    return list(surface.language_faults(language, [{"concept": "wait", **row}], real))


def test_names_exist_and_are_listed() -> None:
    real = {"Queue.wait": Name("method", True), "Queue.wait(id)": Name("str", False)}
    assert faults({"python": "Queue.wait"}, real) == []
    assert faults({"python": ["Queue.wait", "Queue.await"]}, real) == ["python: wait is no Queue.await there"]
    assert faults({}, real) == ["python: Queue.wait is in no row"]


def test_durations_tell_their_unit() -> None:
    real = {"Queue.wait(timeout_ms)": Name("int", False), "Queue.wait(timeout)": Name("float", False)}
    assert faults({"python": "Queue.wait(timeout_ms)", "unit": "ms"}, real) == []
    assert len(faults({"python": "Queue.wait(timeout_ms)"}, real)) == 1
    assert len(faults({"python": "Queue.wait(timeout)", "unit": "ms"}, real)) == 1
    go = {"WithTimeout": Name("func(timeout time.Duration) Option", True)}
    assert faults({"go": "WithTimeout", "unit": "ms"}, go, "go") == []
    assert len(faults({"go": "WithTimeout"}, go, "go")) == 1


def test_a_row_says_why_a_language_has_no_name() -> None:
    table: list[surface.Row] = [{"concept": "x", "python": "X", "go": "X"}]
    assert "x does not say why typescript have no name for it" in list(surface.table_faults(table))
    assert "x is listed twice" in list(surface.table_faults(table * 2))
    assert "x has no ruby" in list(surface.table_faults([{**table[0], "ruby": "X"}]))
