"""Which Pythons and versions are claimed is what `make matrix` tries, and its page is what it found."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from tests import matrix

ROOT = Path(__file__).resolve().parents[1]


def test_the_pythons_that_are_claimed_are_those_of_the_matrix() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    claimed = re.findall(r"Python :: (3\.\d+)", settings["metadata"]["classifiers"])
    assert claimed == list(matrix.PYTHONS)
    assert settings["options"]["python_requires"] == f">={claimed[0]}"
    for distribution in ("full", "light"):
        tried = {one.python for one in matrix.ENVIRONMENTS if (one.distribution, one.versions) == (distribution, "newest")}
        assert tried == set(claimed)


def test_the_page_is_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(shutil.copy(matrix.PAGE, tmp_path))
    monkeypatch.setattr(matrix, "PAGE", page)
    rows = json.loads(matrix.ROWS.read_text(encoding="utf-8"))
    assert {row["environment"] for row in rows} <= {one.name for one in matrix.ENVIRONMENTS}
    matrix.write_page(rows)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def test_a_wheel_is_asked_what_it_needs(tmp_path: Path) -> None:
    asked = ["lm-eval[hf]<0.5,>=0.4.13", 'lm-eval[api]>=0.4.13; extra == "api"', 'onnx>=1.17; extra == "onnx"']
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        lines = ["Metadata-Version: 2.4", "Name: x", *(f"Requires-Dist: {one}" for one in asked)]
        wheel.writestr("x-1.dist-info/METADATA", "\n".join(lines))
    assert matrix.requirements_of(tmp_path / "x.whl", {""}) == ["lm-eval[hf]<0.5,>=0.4.13"]
    assert matrix.requirements_of(tmp_path / "x.whl", {"", "api"}) == ["lm-eval[hf]<0.5,>=0.4.13", "lm-eval[api]>=0.4.13"]
