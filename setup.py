"""Maps the top-level folder `codemods/` to the package `tf_lossscale_codemods`.

The rest is in setup.cfg. The mapping is code because package discovery cannot rename.
"""

from setuptools import find_packages, setup

CODEMODS = "tf_lossscale_codemods"

setup(
    packages=find_packages(include=["tf_lossscale", "tf_lossscale.*"])
    + [CODEMODS]
    + [CODEMODS + "." + name for name in find_packages("codemods")],
    package_dir={CODEMODS: "codemods"},
    package_data={
        "tf_lossscale": ["py.typed"],
        CODEMODS: ["py.typed", "*.html", "*.json", "**/*.html"],
    },
)
