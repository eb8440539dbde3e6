"""Takes the picture of the HTML report for the documentation: docs/report.png.

    python examples/report_picture.py     # needs this package and Chromium

Run it again after the report has changed.
"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURE = os.path.join(os.path.dirname(HERE), "docs", "report.png")
LEGACY = ("digits_graph.py", "digits_keras.py", "bert_style.py")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in LEGACY:
            shutil.copy(os.path.join(HERE, name), folder)
        tool = os.path.join(os.path.dirname(sys.executable), "tf-lossscale")
        report = os.path.join(folder, "report.html")
        command = [tool, "migrate", "--keras", "3", "--check", "--report", "html:" + report, "."]
        assert subprocess.call(command, cwd=folder) == 1
        subprocess.check_call(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                "--window-size=1100,760",
                "--screenshot=" + PICTURE,
                "file://" + report,
            ]
        )
    print(PICTURE)


if __name__ == "__main__":
    main()
