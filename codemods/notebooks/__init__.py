"""Jupyter notebooks: transforms the code cells and keeps all other bytes."""

__all__: "list[str]" = []
