"""Moves `CrossShardOptimizer` and `cross_replica_sum` to `tf.compat.v1.tpu`, or to the shim.

TensorFlow 2.0 removed `tf.contrib.tpu` and `tf.tpu`, and `tensorflow.python.tpu` is private;
`tf.compat.v1.tpu` has had the same class and function since 1.14. They need a TPU: on GPUs and CPUs
the collective has no kernel (`No OpKernel ... CrossReplicaSum`). A finding says so even if the path
needs no change. The shim's (`--to shim`) also run there. The optimizer sums gradients from
`tf.gradients`; it does not average.

`--to shim` is always safe, because `isinstance` treats the shim's class and TensorFlow's as one.
Without it, a program that already uses the shim's keeps it, with a note. `--unsafe` writes
`tf.compat.v1.tpu`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule

__all__ = ["RULE"]

_CODES = {"LS501": "CrossShardOptimizer", "LS502": "cross_replica_sum"}
_NEEDS_TPU = 'it needs a TPU and fails elsewhere with "No OpKernel"'
_TPU_ONLY = f"{_NEEDS_TPU}; --to shim gives one that also runs on GPUs and CPUs"
_ON_SHIM = "the program uses the shim's already, and tf.compat.v1.tpu.{} needs a TPU"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """A program that uses the shim's already keeps them, at all its places."""
    for reference in program.references_to(*_CODES):
        if reference.legacy.is_on_shim and not options.unsafe:
            yield Obstacle.at(reference, _ON_SHIM.format(reference.legacy.name))


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the last path; a note where the symbol is there."""
    for reference in program.references_to(*_CODES):
        name = reference.legacy.name
        path = f"tensorflow.compat.v1.tpu.{name}"
        if reference.legacy.is_on_shim:
            caveat = f"{_NEEDS_TPU}; the shim's also runs on GPUs and CPUs"
            yield Proposal.unsafe(reference, caveat, path=path)
            continue
        made = Proposal.moved(reference, path, _TPU_ONLY)
        yield made or Proposal.note(reference.node, reference.legacy.rule, name, _TPU_ONLY)


RULE = Rule(
    codes=_CODES,
    summary="CrossShardOptimizer and cross_replica_sum to tf.compat.v1.tpu",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    needs=needs,
    check=check,
    cases="""
        # not a function that the program defines
          import tensorflow as tf

          def cross_replica_sum(x):
              return x

          y = cross_replica_sum(x)

        # under a flag
        > safe: --to shim
          import tensorflow as tf
        - from tensorflow.python.tpu.ops import tpu_ops
        + from tensorflow.compat.v1 import tpu

          if use_tpu:
        -     optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        -     total = tpu_ops.cross_replica_sum(total)
        +     optimizer = tf.compat.v1.tpu.CrossShardOptimizer(optimizer)
        +     total = tpu.cross_replica_sum(total)

        # a sum over all replicas, imported by name
        - from tensorflow.contrib.tpu import CrossShardOptimizer, cross_replica_sum
        + from tensorflow.compat.v1.tpu import CrossShardOptimizer, cross_replica_sum

          opt = CrossShardOptimizer(opt)
          total = cross_replica_sum(x)

        # to the shim, which needs no TPU
        > --to shim
        - import tensorflow.compat.v1 as tf
        + import tf_lossscale as tfls

        - opt = tf.tpu.CrossShardOptimizer(opt)
        - total = tf.tpu.cross_replica_sum(x)
        + opt = tfls.compat.v1.tpu.CrossShardOptimizer(opt)
        + total = tfls.compat.v1.tpu.cross_replica_sum(x)
    """,
)
