"""Records of training runs: their contents, reading and writing. Nothing here needs TensorFlow."""
