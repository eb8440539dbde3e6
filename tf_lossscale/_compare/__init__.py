"""The comparison of recorded training runs. Nothing here needs TensorFlow."""
