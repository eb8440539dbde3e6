"""What `inspect` and `convert` print of a file."""

import json
import math
from typing import Any, Dict, Iterator, List, Sequence

from tf_lossscale._checkpoint.finding import Contents, State, Variable
from tf_lossscale._checkpoint.plans import Plan

__all__ = ["as_json", "as_text", "of_plan"]


def as_text(contents: Contents) -> List[str]:
    """Returns the lines of the report of `inspect`."""
    lines = [contents.path, f"  {contents.format}"]
    for state in contents.states:
        lines += ["", *_state_lines(state)]
    for each in contents.configured:
        settings = ", ".join(f"{name}={value}" for name, value in each.settings.items())
        lines += ["", f"Configured: {each.class_name}({settings})", f"  {each.note}"]
    if not contents.states:
        lines += [
            "",
            "No loss-scale state. A fixed loss scale has none; that of a dynamic one is missing "
            "where only weights were saved.",
        ]
    return lines


def _state_lines(state: State) -> Iterator[str]:
    yield f"Loss scale of {state.layout.written_by}"
    yield f"  TensorFlow: {state.layout.tensorflow}"
    for row in _rows([(v.key, v.role, v.dtype, str(v.value)) for v in state.variables]):
        yield f"    {row}"
    if state.layout.restored_by:
        yield "  restored by:"
        for each in state.layout.restored_by:
            yield f"    {each}"
    for note in state.layout.notes:
        yield f"  note: {note}"


def _rows(cells: Sequence[Sequence[str]]) -> List[str]:
    """Returns the lines of a table."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells
    ]


def as_json(contents: Contents) -> List[str]:
    """The same as JSON, in which NaN and infinity are strings, because JSON lacks them."""
    text = json.dumps(
        {
            "version": 1,
            "path": contents.path,
            "format": contents.format,
            "states": [_state(each) for each in contents.states],
            "configured": [each._asdict() for each in contents.configured],
        },
        indent=2,
    )
    return text.splitlines()


def _state(state: State) -> Dict[str, Any]:
    layout = {**state.layout._asdict(), "family": state.layout.family or None}
    del layout["roles"]
    return {**layout, "variables": [_variable(each) for each in state.variables]}


def _variable(variable: Variable) -> Dict[str, Any]:
    value: Any = variable.value
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    return {**variable._asdict(), "value": value}


def of_plan(plan: Plan) -> Iterator[str]:
    """Yields the lines of the report of `convert`, below its title."""
    if plan.changes:
        for row in _rows([(old, "->", new) for old, new in plan.changes]):
            yield f"  {row}"
    else:
        yield "  unchanged: the target can restore the loss scale from it"
    for notice in plan.notices:
        yield f"note: {notice}"
