"""Edits that more than one rule needs, and the proposal that carries them."""

__all__: "list[str]" = []
