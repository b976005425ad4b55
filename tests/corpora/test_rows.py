from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.rows import read_array, unique_ids

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows") / "rows.json"


@given(
    rows=st.lists(st.dictionaries(st.text(), VALUES, max_size=3), min_size=1, max_size=4), indent=st.sampled_from([None, 0, 4])
)
def test_reads_what_json_reads(scratch: Path, rows: list[dict[str, object]], indent: int | None) -> None:
    text = json.dumps(rows, indent=indent)
    scratch.write_bytes(text.encode())
    assert [line.value for line in read_array(scratch)] == json.loads(text)


def test_each_row_knows_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('\n[{"a": 1}, {\n"b":\n2},\n\n{"c": 3}]\n')
    assert [line.where for line in read_array(path)] == [f"{path}:2", f"{path}:2", f"{path}:6"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: expected a JSON array of objects. Is this another file's layout?"),
        ('{"a": 1}', "1: expected a JSON array of objects. Is this another file's layout?"),
        ('\n[{"a": 1},\n{"a": ', "3: not valid JSON (Expecting value). Was the file cut off?"),
        ('[{"a": 1},\n', "2: not valid JSON (Expecting value). Was the file cut off?"),
        ('[{"a": 1}\n', "2: not valid JSON (expected ',' or ']' after a row). Was the file cut off?"),
        ("[", "1: not valid JSON (Expecting value). Was the file cut off?"),
        ('[{"a": 1},\n]', "2: not valid JSON (a comma before the closing bracket). Was the file edited by hand?"),
        ("[{}]\n[{}]", "2: not valid JSON (text after the closing bracket). Were two files joined?"),
        ('[{},\n"text"]', "2: row 1: expected a JSON object, got str."),
    ],
)
def test_malformed_array_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}:{message}')}$"):
        read_array(path)


def test_empty_array_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("[ ]")
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: is an empty array, expected one object a row\\.$"):
        read_array(path)


@given(ids=st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2"]), max_size=12))
def test_unique_ids_are_unique_and_keep_the_first(ids: list[str]) -> None:
    unique = unique_ids(ids)
    assert len(set(unique)) == len(ids) == len(unique)
    for id in set(ids):
        assert unique[ids.index(id)] == id
