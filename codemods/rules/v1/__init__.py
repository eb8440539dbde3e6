"""Loss scales of `tf.train.experimental`, and the graph rewrite."""
