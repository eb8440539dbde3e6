"""`python -m tf_lossscale SCRIPT [ARGS]`: runs an unmodified script with the shim installed."""

import sys

from tf_lossscale._cli.main import main

sys.exit(main(["run", *sys.argv[1:]], prog="python -m tf_lossscale"))
