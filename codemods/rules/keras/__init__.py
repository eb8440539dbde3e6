"""Keras loss-scale optimizers, up to Keras 3."""

__all__: "list[str]" = []
