"""Takes the picture of the HTML report for the documentation: docs/report.png.

    python examples/report_picture.py     # needs this package and Chromium

Run it again after the report has changed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURE = os.path.join(os.path.dirname(HERE), "docs", "report.png")
LEGACY = os.path.join(HERE, "guide-keras")
OPENED = '<details class="place" data-outcome="safe" data-code="LS203"'
MEASURE = "<script>document.title = 'height ' + document.documentElement.scrollHeight</script>"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("finetune.py", "train.py"):
            shutil.copy(os.path.join(LEGACY, name), folder)
        tool = os.path.join(os.path.dirname(sys.executable), "tf-lossscale")
        report = os.path.join(folder, "report.html")
        command = [tool, "migrate", "--keras", "3", "--check", "--report", "html:" + report, "."]
        assert subprocess.call(command, cwd=folder) == 1
        with open(report, encoding="utf-8") as file:
            page = file.read()
        page = page.replace(OPENED, OPENED.replace("details", "details open", 1), 1)
        with open(report, "w", encoding="utf-8") as file:
            file.write(page + MEASURE)
        (height,) = re.findall("<title>height ([0-9]+)", _chromium(report, 100, "--dump-dom"))
        _chromium(report, int(height), "--screenshot=" + PICTURE)
    print(PICTURE)


def _chromium(page: str, height: int, action: str) -> str:
    """Opens the page in a window of this height, and returns what the action prints."""
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size=1100,{height}"]
    done = subprocess.run(
        ["chromium", *options, action, "file://" + page], stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode()


if __name__ == "__main__":
    main()
