"""Random programs, before and after the codemods, executed on the TensorFlow that is installed."""
