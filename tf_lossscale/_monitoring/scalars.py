"""Writes scalars that TensorBoard shows."""

from typing import Any, Dict, Optional

from tf_lossscale._versions.base import tf, tf1

__all__ = ["ScalarWriter"]


class ScalarWriter:
    """Writes an event file, in eager mode and in graphs alike; needs no TensorBoard.

    Args:
      log_dir: the folder; None writes nothing.

    Raises:
      ValueError: the folder cannot be written to.
    """

    def __init__(self, log_dir: Optional[Any]) -> None:
        self._writer: Any = None
        if log_dir is None:
            return
        try:
            tf.io.gfile.makedirs(str(log_dir))
            # In a graph, because this class refuses eager mode, although it needs no graph.
            with tf.Graph().as_default():
                self._writer = tf1.summary.FileWriter(str(log_dir))
        except (OSError, tf.errors.OpError) as error:
            raise ValueError(
                f"No TensorBoard scalars can be written to log_dir={str(log_dir)!r}: {error}. Pass "
                "a folder that this process may write to, or log_dir=None."
            ) from error

    def write(self, step: int, values: Dict[str, float]) -> None:
        """Writes values by their tags.

        Args:
          step: where TensorBoard shows them.
          values: tags and values.
        """
        if self._writer is not None:
            scalars = [tf1.Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
            self._writer.add_summary(tf1.Summary(value=scalars), step)

    def flush(self) -> None:
        """Makes what was written visible to TensorBoard."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Closes the file; `write` does nothing afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
