"""Restoring a half-trained run of Keras 2 on Keras 3, and the other way round.

Not a namespace of TensorFlow's: these names are this package's own.
"""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._restore.report import Entry as Entry, Report as Report
    from tf_lossscale._restore.restore import restore as restore
    from tf_lossscale._restore.stored import RestoreError as RestoreError
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(
        __name__,
        Entry="_restore.report",
        Report="_restore.report",
        RestoreError="_restore.stored",
        restore="_restore.restore",
    )
