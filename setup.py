"""Which packages are built, and into which of two distributions; everything else about them stands in setup.cfg.

    python -m build                              # dialeval-plugin: complete, with the hosts
    DIALEVAL_DISTRIBUTION=core python -m build   # dialeval-core: the same modules, and few other packages

One of the two is installed, not both. dialeval-plugin does not depend on dialeval-core, so that a checkout or an address of git
installs without an index that has the other.
"""

import os
import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

# All that dialeval-core requires: what the bundled models, the readers of logs, the statistics and the command line need.
CORE = (
    *("annotated-types", "filelock", "fsspec", "huggingface_hub", "jinja2", "numpy", "onnxruntime", "pooch", "pydantic"),
    *("pyyaml", "rich", "safetensors", "scipy", "tokenizers", "tqdm", "typer"),
)
# Extras that bring the other requirements of dialeval-plugin, in parts; the other extras, in setup.cfg, are both's as well.
PARTS = {
    "torch": ("torch", "transformers", "sentence-transformers"),
    "lm-eval": ("lm-eval", "tenacity"),
    "evaluate": ("evaluate", "datasets"),
    "datasets": ("datasets",),
    "train": ("torch", "transformers", "sentence-transformers", "datasets", "scikit-learn"),
    "baselines": ("nltk", "rouge-score", "sacrebleu"),
    "pandas": ("pandas",),
    "parquet": ("pyarrow",),
}


def requirements(text):
    """Return the requirements of a list in setup.cfg by the names of their packages."""
    return {re.match(r"[\w-]+", line)[0]: line for line in text.splitlines() if line and not line.startswith("#")}


def is_core():
    """Whether dialeval-core is asked for, or this is its source distribution."""
    if asked := os.environ.get("DIALEVAL_DISTRIBUTION"):
        return {"core": True, "plugin": False}[asked]
    made = Path("PKG-INFO")
    return made.is_file() and "\nName: dialeval-core\n" in made.read_text(encoding="utf-8")


described = ConfigParser()
described.read("setup.cfg", encoding="utf-8")
extras = {extra: requirements(text) for extra, text in described["options.extras_require"].items()}
known = extras["onnx"] | requirements(described["options"]["install_requires"])

setup(
    # Two packages are next to the package in a checkout and inside it in a wheel (`package_dir` in setup.cfg).
    packages=[
        *find_packages(include=["dialeval_plugin", "dialeval_plugin.*"]),
        "dialeval_plugin.metrics",
        "dialeval_plugin.tasks",
    ],
    extras_require={extra: list(wanted.values()) for extra, wanted in extras.items()}
    | {extra: [known[name] for name in names] for extra, names in PARTS.items()},
    **({"name": "dialeval-core", "install_requires": [known[name] for name in CORE]} if is_core() else {}),
)
