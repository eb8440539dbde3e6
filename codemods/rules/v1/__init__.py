"""LS2: loss scales of `tf.train.experimental`, and the graph rewrite."""

__all__: "list[str]" = []
