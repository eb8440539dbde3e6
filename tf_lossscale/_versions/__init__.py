"""Everything that depends on the version of TensorFlow or Keras, and every use of a private module.

No other folder compares versions or imports a private module of TensorFlow. For each private name
a comment explains why no public one will do.
"""
