"""Every rule has a proof, every scenario proves a rule."""

from __future__ import annotations

from . import rules


def test_the_map_of_rules_holds() -> None:
    assert rules.faults() == []
