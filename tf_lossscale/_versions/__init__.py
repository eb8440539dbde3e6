"""All that is known about versions of TensorFlow and Keras, and the private modules that we need.

Nothing else compares versions or imports a private module of TensorFlow; each private name here
says why there is no public one. What a module needs, it imports from the submodule that has it.
"""
