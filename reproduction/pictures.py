"""The pictures of the documentation: the forest plot of its first page, and the gallery of what `dialeval plot` draws.

DIALEVAL_DATA_DIR names the folder with `dstc10` and `llm_judgements`, and for the gallery's weights `usr`.

    python -m reproduction.pictures --work FOLDER --output docs/pictures            # both; the forest plot takes some minutes
    python -m reproduction.pictures --work FOLDER --output docs/pictures --gallery  # the gallery alone
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import dialeval_plugin
from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora.corpus import DATA_DIR_VARIABLE
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.models.folders import PRETRAINED

MINI = Path(dialeval_plugin.__file__).parent / "corpora" / "mini" / "dailydialog_pp.jsonl"
"""The embedded corpus."""
QUALITIES = {"tu": "Overall", "pu": "Overall", "dz": "appropriateness", "ft": "Overall", "dgu": "overall", "eg": "relevance"}
"""Overall rating of each set, or the quality that is nearest to it."""
_JUDGED = ("tu", "pu", "ft")
"""Sets of which there are verdicts about the overall quality."""
EVALUATORS = {
    "general": ("general", (), tuple(QUALITIES)),
    "slide, small model": ("slide", ("variant=slm",), tuple(QUALITIES)),
    "response length": ("response_length", (), tuple(QUALITIES)),
    **{
        judge: ("replay_judge", (f"source={judge}/AutomaticDialogueEvaluation",), _JUDGED)
        for judge in ("Vicuna-13B-v1.5", "Qwen-14B")
    },
}
"""By the name in the picture: the scorer, its options, and the sets."""


def dialeval(*words: str | Path) -> None:
    """Run a command as it is typed."""
    app([str(word) for word in words], standalone_mode=False)


def forest(work: Path, output: Path) -> None:
    """Score the sets, compute the coefficients, draw."""
    tables = []
    for code, quality in QUALITIES.items():
        scores = []
        for name, (scorer, options, sets) in EVALUATORS.items():
            if code not in sets:
                continue
            scores.append(work / code / f"{name}.jsonl")
            words = [word for option in options for word in ("--option", option)]
            data = Path(os.environ[DATA_DIR_VARIABLE], "dstc10", f"{dstc10.SETS[code].name}_eval.json")
            dialeval("score", data, "--scorer", scorer, *words, "--output", scores[-1], "--worst", "0")
        tables.append(work / f"{code}.json")
        computed = ["--quality", quality, "--coefficient", "spearman", "--permutations", "0"]
        dialeval("meta-eval", *scores, "--ratings", code, *computed, "--format", "json", "--output", tables[-1])
    dialeval("plot", "forest", *tables, "--output", output)


def gallery(work: Path, output: Path) -> None:
    """Draw every other plot of the bundled models and of the embedded corpus; the weights are of published scores."""
    small = PRETRAINED / "slide"
    for kind in ("disentangling", "thresholds", "distribution"):
        dialeval("plot", kind, MINI, "--slm", small, "--output", output / f"{kind}.png")
    dialeval("plot", "training", small, "--output", output / "training.png")
    regression = work / "proxy.json"
    rated = Path(os.environ[DATA_DIR_VARIABLE], "usr", "eval_usr_topical_chat.json")
    dialeval("train", "proxy", "--data", rated, "--published-scores", "--output", regression)
    dialeval("plot", "weights", regression, "--output", output / "weights.png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of scores and tables")
    parser.add_argument("--output", type=Path, required=True, help="folder of the pictures")
    parser.add_argument("--gallery", action="store_true", help="without the forest plot")
    asked = parser.parse_args(arguments)
    asked.work.mkdir(parents=True, exist_ok=True)
    gallery(asked.work, asked.output)
    if not asked.gallery:
        forest(asked.work, asked.output / "forest.svg")


if __name__ == "__main__":
    main()
