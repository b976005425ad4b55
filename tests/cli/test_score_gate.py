"""`dialeval score --fail-under`: the gate of one version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run, write_rows
from tests.refusals import refused

LENGTH = ("--scorer", "response_length", "--worst", "0")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Twenty conversations with an answer of one, two or three words: their mean is 1.95."""
    return write_rows(
        tmp_path / "log.jsonl",
        [
            {
                "id": str(number),
                "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes. " * (1 + number % 3)}],
            }
            for number in range(20)
        ],
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("1",), 0, "gate passed: mean 1.950 (1.550 to 2.350) is not wholly below 1.000."),
        # Below, but not by more than chance.
        (("2.2",), 0, "gate passed: mean 1.950 (1.550 to 2.350) is not wholly below 2.200."),
        (("2.5",), 1, "gate failed: mean 1.950 (1.550 to 2.350) is below 2.500."),
        (("1", "--min-conversations", "21"), 1, "gate undecided: 20 conversations, and 21 are needed. Score more of them."),
    ],
)
def test_a_gate_decides_the_exit_code(log: Path, options: tuple[str, ...], code: int, said: str) -> None:
    done = run("score", log, *LENGTH, "--fail-under", *options)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (code, said)


def test_scores_are_kept_where_the_gate_fails(log: Path, tmp_path: Path) -> None:
    assert run("score", log, *LENGTH, "--fail-under", "9", "--output", tmp_path / "scores.jsonl").exit_code == 1
    assert len((tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--min-conversations", "20"),
            "--min-conversations: needs a threshold. Add --fail-under, or leave it out.",
        ),
        (("--fail-under", "nan"), "--fail-under nan: is not a threshold. Give a number."),
        (
            ("--fail-under", "1", "--min-conversations", "5"),
            "--min-conversations 5: an interval needs 10. Ask for as many, or more.",
        ),
        (
            ("--fail-under", "1", "--shard", "1/2", "--output", "part.jsonl"),
            "--fail-under: needs the whole input, and only a part is scored. Leave it out.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_scored(log: Path, options: tuple[str, ...], message: str) -> None:
    with refused(message):
        run("score", log, *LENGTH, *options)
