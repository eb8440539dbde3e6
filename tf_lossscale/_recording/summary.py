"""Formats a comparison as text, and as values for JSON."""

from typing import Any, Dict, List, Optional

from tf_lossscale._recording.comparing import Comparison

__all__ = ["as_values", "table", "text"]

_AROUND = 4
_COLUMNS = (("loss", "loss"), ("scale", "scales"), ("skipped", "finite"), ("norm", "norm"))


def text(comparison: Comparison, title: str) -> str:
    """Returns the verdict, the evidence for it, and the steps around the first divergence."""
    lines = ([title] if title else []) + [comparison.sentence]
    lines += [f"  - {each}" for each in comparison.evidence]
    rows = table(comparison)
    if rows:
        lines.append("")
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row, widths)]
            lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def table(comparison: Comparison) -> List[List[str]]:
    """Returns the header and the rows around the first divergence; empty if there is none."""
    aligned, step = comparison.aligned, comparison.step
    if aligned is None or step is None:
        return []
    steps = [aligned.step(index) for index in range(len(aligned.pairs))]
    place = next((index for index, each in enumerate(steps) if each >= step), len(steps) - 1)
    first, end = max(0, place - _AROUND), min(len(steps), place + _AROUND + 1)
    heads = ["step"]
    columns = [[f"{'> ' if each == step else ''}{each}" for each in steps[first:end]]]
    for head, name in _COLUMNS:
        pairs = aligned.column(name, first, end)
        for number, which in enumerate(("old", "new")):
            heads.append(f"{head} {which}")
            columns.append([_shown(pair[number]) for pair in pairs])
    return [heads, *(list(row) for row in zip(*columns))]


def _shown(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "" if value else "skipped"
    return f"{value:.6g}"


def as_values(comparison: Comparison, optimizer: int) -> Dict[str, Any]:
    """Returns the values for JSON: verdict, sentence, evidence, step and the steps around it."""
    rows: Optional[List[List[str]]] = table(comparison)
    return {
        "optimizer": optimizer,
        "verdict": comparison.verdict.value[0],
        "sentence": comparison.sentence,
        "evidence": comparison.evidence,
        "step": comparison.step,
        "table": rows,
    }
