"""Loss scales of `tf.train.experimental`, and the graph rewrite."""

__all__: "list[str]" = []
