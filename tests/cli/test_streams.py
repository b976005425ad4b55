"""Odd streams, names and moments: one line instead of a traceback. FAULTS R64, R68, D7, D26, D32."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import names, write_rows

ENTRY = "from dialeval_plugin.cli.entry import main; main()"
SCORED = (
    b'{"id": "0", "source": "in.jsonl:1", "words": 1.0, "characters": 1.0}\n'
    b'{"id": "1", "source": "in.jsonl:2", "words": 2.0, "characters": 3.0}\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "in.jsonl", [{"context": ["Hi."], "response": text} for text in ("a", "b c")])
    return tmp_path


def run(folder: Path, *words: str | bytes, streams: str = "", code: str = ENTRY) -> subprocess.CompletedProcess[bytes]:
    """Run the command; `streams` redirects its streams."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        ["sh", "-c", f'"$0" "$@" {streams}', *command],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        timeout=300,
        check=False,
    )


def score(output: str | bytes) -> tuple[str | bytes, ...]:
    return ("score", "in.jsonl", "--scorer", "response_length", "--output", output)


def test_d7_scores_go_through_a_pipe_and_nothing_is_left_beside_it(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=folder, stdout=subprocess.PIPE) as reader:
        done = run(folder, *score("pipe"))
        assert reader.stdout is not None
        assert reader.stdout.read() == SCORED
    assert (done.returncode, done.stderr) == (0, b"")
    assert names(folder) == ["in.jsonl", "pipe"]


def test_d7_scores_go_to_standard_output(folder: Path) -> None:
    # As /dev/stdout, which root would lose if this failed.
    (folder / "stdout").symlink_to("/proc/self/fd/1")
    done = run(folder, *score("stdout"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(SCORED + b"words: mean 1.5000, 2 of 2 scored\n")
    assert names(folder) == ["in.jsonl", "stdout"]


@pytest.mark.long
def test_d32_a_long_name_is_written_or_refused_before_anything_is_scored(folder: Path) -> None:
    name = "n" * 234 + ".jsonl"
    assert run(folder, *score(name)).returncode == 0
    assert names(folder) == ["in.jsonl", name, f"{name}.meta.json"]

    name = "m" * 240 + ".jsonl"
    done = run(folder, *score(name))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        f"dialeval: {name}.meta.json: cannot be written (File name too long). "
        "Choose a shorter name for the output, next to which this file is written.\n"
    )
    assert not [found for found in names(folder) if found.startswith("m")]

    name = "m" * 250 + ".jsonl"
    done = run(folder, *score(name))
    assert (done.returncode, done.stderr.decode()) == (2, f"dialeval: {name}: File name too long.\n")


@pytest.mark.parametrize("words", [score(b"out\xff"), ("score", b"in\xff", "--output", "out"), ("meta-eval", b"\xff")])
def test_a_word_that_is_no_unicode_is_one_line(words: tuple[str | bytes, ...], folder: Path) -> None:
    done = run(folder, *words)
    assert (done.returncode, done.stdout) == (2, b"")
    shown = next(word for word in words if isinstance(word, bytes)).decode("utf-8", "surrogateescape")
    assert done.stderr.decode() == (
        f"dialeval: {shown!r}: is not valid Unicode. Rename the file, or write the word in UTF-8.\n"
    )
    assert names(folder) == ["in.jsonl"]


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_d26_without_a_stream_it_works_and_no_file_takes_its_place(closed: str, folder: Path) -> None:
    done = run(folder, *score("out.jsonl"), streams=closed)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (folder / "out.jsonl").read_bytes() == SCORED


def test_a_working_folder_that_was_deleted_is_one_line(folder: Path) -> None:
    words = ("score", str(folder / "in.jsonl"), "--scorer", "response_length", "--output", "out.jsonl")
    gone = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
    done = run(folder, *words, code=gone + ENTRY)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"dialeval: the working folder is not there any more. Change to another one.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("words", [("tasks-path",), score("out.jsonl")])
def test_d26_a_full_standard_output_is_one_line(words: tuple[str, ...], folder: Path) -> None:
    done = run(folder, *words, streams=">/dev/full")
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "dialeval: the output cannot be written (No space left on device). Repeat the command when there is room.\n"
    )


INTERRUPTED = (
    """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
"""
    + ENTRY
)


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("typer", score("out.jsonl"), "dialeval: interrupted\n"),
        ("dialeval_plugin.cli.score", ("--help",), "dialeval: interrupted\n"),
        (
            "dialeval_plugin.hosts.judges",
            score("out.jsonl"),
            "dialeval: interrupted; the same command resumes from finished parts, if there are any\n",
        ),
        ("dialeval_plugin.reports.correlation_report", ("meta-eval", "in.jsonl"), "dialeval: interrupted\n"),
        ("dialeval_plugin.hosts.lm_eval.cli", ("lm-eval", "ls"), "dialeval: interrupted\n"),
    ],
)
def test_r68_ctrl_c_at_any_moment_exits_with_130_and_promises_what_is_true(
    name: str, words: tuple[str, ...], message: str, folder: Path
) -> None:
    """While modules were imported it ended in a traceback, and `meta-eval` promised parts that nobody keeps."""
    done = run(folder, *words, code=INTERRUPTED.format(name=name))
    assert (done.returncode, done.stdout, done.stderr.decode()) == (130, b"", message)
