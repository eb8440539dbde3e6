"""`tf.contrib.mixed_precision`."""
