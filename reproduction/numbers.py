"""Every number that the commands give on public data, to compare two versions of the package.

    python -m reproduction.numbers before.json          # in the environment of one version
    python -m reproduction.numbers after.json           # in that of the other
    python -m reproduction.numbers --compare before.json after.json

The first two take some four minutes each. The last one exits with 1 where a number differs by more than 1e-9 or is
missing on one side. Only commands are used, no module of the package, so that both sides may be of any version that has them.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOLERANCE = 1e-9
TURNS, DIALOGUES = "dstc10/topical-usr_eval.json", "dstc10/fed-dial_eval.json"
MODELS = ("general", "general-open", "assistant", "assistant-open", "slide", "causalscore", "auto")
BASELINES = ("bleu", "chrf", "rouge", "response_length", "random", "sentence_similarity", "embedding_overlap")
OF_DIALOGUES = MODELS[:4]
PREPARED = Path(__file__).parent.parent / "tests/lm_eval_files"
"""Results of lm-eval runs, for the leaderboard."""


def commands(data: Path, folder: Path) -> Iterator[list[str]]:
    """Yield the commands in the order in which they run; what one writes into `folder` the next ones read."""
    for corpus, path, scorers, level in (
        ("tu", TURNS, (*MODELS, *BASELINES), []),
        ("fd", DIALOGUES, OF_DIALOGUES, ["--option", "level=dialogue"]),
    ):
        scores = {scorer: folder / f"{scorer}-{corpus}.jsonl" for scorer in scorers}
        for scorer, output in scores.items():
            name = scorer.removesuffix("-open")
            model = [] if name == scorer else ["--option", f"model={scorer}"]
            words = ["--scorer", name, *model, *level, "--output", str(output), "--max-unscored", "1"]
            yield ["score", str(data / path), *words]
        files = [f"{scorer}={output}" for scorer, output in scores.items() if scorer != "random"]
        table = ["--format", "json", "--rounds", "200", "--permutations", "200", "--max-unscored", "1", "--min-coverage", "0"]
        for further in ([], ["--interval", "bca"], ["--average-by", "system"], ["--by-system"]):
            output = folder / f"agreement-{corpus}{'-'.join(further)}.json"
            yield ["meta-eval", *files, "--ratings", corpus, *table, *further, "--output", str(output)]
    general, open_one, length = (folder / f"{name}-tu.jsonl" for name in ("general", "general-open", "response_length"))
    compared = ["--format", "json", "--output", str(folder / "compare.json"), "--ignore", "model"]
    yield ["compare", str(general), str(open_one), *compared]
    yield ["certify", f"general={general}", "--labels", "tu", "--output", str(folder / "passport.json"), "--rounds", "200"]
    yield ["bias", str(data / TURNS), "--most", "40", "--output", str(folder / "bias.json")]
    coefficients = ["--quality", "all", "--coefficient", "kendall_b", "--coefficient", "pearson"]
    written = ["--format", "json", "--output", str(folder / "qualities.json")]
    yield ["meta-eval", f"length={length}", "--ratings", "tu", *coefficients, *written]
    yield ["meta-eval", "--ratings", "fed", "--rows", "turn", "--format", "json", "--output", str(folder / "ratings.json")]
    yield ["leaderboard", "build", str(PREPARED), "--output", str(folder / "board")]


def numbers_of(value: Any, place: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield each number below a JSON value with its place; None is one, as a value that became undefined is a difference."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from numbers_of(below, f"{place}/{key}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from numbers_of(below, f"{place}/{index}")
    elif value is None or isinstance(value, (bool, int, float)):
        yield place, None if value is None else float(value)


def rows_of(path: Path) -> Any:
    """Return what a file holds, as JSON."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as lines:
            return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(lines)]
    text = path.read_text(encoding="utf-8")
    return list(map(json.loads, text.splitlines())) if path.suffix == ".jsonl" else json.loads(text)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def measure() -> dict[str, dict[str, float | None]]:
    """Run the commands and return the numbers of each file that they wrote."""
    data = Path(os.environ["DIALEVAL_DATA_DIR"])
    dialeval = Path(sys.executable).with_name("dialeval")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "out"
        folder.mkdir()
        for words in commands(data, folder):
            run = subprocess.run([dialeval, *words], cwd=home, capture_output=True, text=True, check=False)  # noqa: S603 - own words
            print(run.returncode, " ".join(Path(word).name for word in words), file=sys.stderr)
            if run.returncode not in (0, 1):
                raise SystemExit(run.stderr)
        files = sorted(
            path for path in folder.rglob("*") if path.suffix in {".json", ".jsonl", ".csv"} and ".meta" not in path.name
        )
        return {str(path.relative_to(folder)): dict(numbers_of(rows_of(path))) for path in files}


def compare(before: Path, after: Path) -> int:
    """Print the largest difference of each file; return the exit code."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    bad = 0
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name, {}), new.get(name, {})
        one_sided = a.keys() ^ b.keys() | {place for place in a.keys() & b.keys() if (a[place] is None) != (b[place] is None)}
        differences = {place: abs(a[place] - b[place]) for place in a.keys() & b.keys() if None not in (a[place], b[place])}
        largest = max(differences, key=differences.__getitem__, default="")
        difference = differences.get(largest, 0.0)
        moved = bool(one_sided) or difference > TOLERANCE
        bad += moved
        example = f"  {min(one_sided)}" if one_sided else f"  {largest}" if moved else ""
        print(f"{'DIFFERS' if moved else 'equal':8}{name:48}{len(a):8}{len(b):8}  {difference:.1e}{example}")
    print(f"{sum(map(len, old.values()))} numbers before, {sum(map(len, new.values()))} after; {bad} files differ")
    return int(bad > 0)


def main() -> int:
    """Measure, or compare two measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    if options.compare:
        return compare(*options.files)
    (output,) = options.files
    output.write_text(json.dumps(measure()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
