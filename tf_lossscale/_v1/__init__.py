"""The loss scales, the optimizer and the graph rewrite of `tf.train.experimental`."""
