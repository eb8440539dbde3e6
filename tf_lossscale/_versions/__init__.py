"""Everything that depends on the version of TensorFlow or Keras, and every use of a private module.

No other folder compares versions or imports a private module of TensorFlow. A comment beside each
private name explains why no public one can be used. CONTRIBUTING.md lists what a new TensorFlow may
change here.
"""
