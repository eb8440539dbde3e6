"""`tf.contrib.mixed_precision`."""

__all__: "list[str]" = []
