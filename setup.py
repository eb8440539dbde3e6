"""The parts of the metadata that setup.cfg cannot express.

The top-level folder `codemods/` becomes the package `tf_lossscale_codemods`: package discovery
cannot rename. The README, whose links are relative, becomes the package page: there, they lead to
the address in `tf_lossscale/_about.py`, or become plain text while that is empty.
"""

import os
import re
import runpy

from setuptools import find_packages, setup

CODEMODS = "tf_lossscale_codemods"
HERE = os.path.dirname(os.path.abspath(__file__))
HOME = runpy.run_path(os.path.join(HERE, "tf_lossscale", "_about.py"))["HOME"]


def package_page(text, home):
    """Returns the README with links that work outside of the repository."""
    link = rf"[\1]({home}/blob/main/\2)" if home else r"\1"
    return re.sub(r"\[([^\]]*)\]\((?!https?:)([^)]*)\)", link, text)


def addresses(home):
    """Returns the addresses that an index shows beside the page."""
    if not home:
        return {}
    return {
        "url": home,
        "project_urls": {
            "Documentation": home + "/blob/main/docs/index.md",
            "Changelog": home + "/blob/main/CHANGELOG.md",
            "Issues": home + "/issues",
        },
    }


with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
    PAGE = package_page(readme.read(), HOME)

setup(
    long_description=PAGE,
    packages=find_packages(include=["tf_lossscale", "tf_lossscale.*"])
    + [CODEMODS]
    + [CODEMODS + "." + name for name in find_packages("codemods")],
    package_dir={CODEMODS: "codemods"},
    package_data={
        "tf_lossscale": ["py.typed"],
        CODEMODS: ["py.typed", "*.html", "*.json", "**/*.html"],
    },
    **addresses(HOME),
)
