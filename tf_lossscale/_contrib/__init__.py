"""`tf.contrib.mixed_precision` of TensorFlow 1.15: managers and optimizer."""
