"""Which packages are built; everything else about them stands in setup.cfg."""

from setuptools import find_packages, setup

# Two of them lie beside the package in a checkout and inside it in a wheel (`package_dir` in setup.cfg).
setup(
    packages=[
        *find_packages(include=["dialeval_plugin", "dialeval_plugin.*"]),
        "dialeval_plugin.metrics",
        "dialeval_plugin.tasks",
    ]
)
