"""LS3 and LS4: the Keras loss-scale optimizers, up to Keras 3."""

__all__: "list[str]" = []
