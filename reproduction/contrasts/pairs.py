"""Sources of the pairs: files written by hand, and the perturbation tests of Zhang et al. (AAAI 2024), spoiled by rule.

"A Comprehensive Analysis of the Effectiveness of Large Language Models as Automatic Dialogue Evaluators". Their files are
`robustness_data` of github.com/e0397123/comp-analysis, in the folder `robustness` of DIALEVAL_DATA_DIR: a line a row, id and
turns separated by tabs, and a row of one file belongs to that of the same number in another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.files import checked, read_json, read_text
from dialeval_plugin.corpora.identity import opening_key
from dialeval_plugin.corpora.rows import split_speaker
from reproduction.contrasts.measures import ContrastPair
from reproduction.data import data_folder

RESPONSES, LONG = (
    Path(__file__).resolve().parents[2] / "tests" / "contrast" / f"{name}.jsonl" for name in ("responses", "long")
)
"""Files of pairs: worse responses of nine kinds to 50 contexts, and long responses that end badly (`results.md`)."""
_GROUPS = {
    "int": ("dullness",),
    "rel": ("pronoun", "spk", "contradiction", "ner"),
    "und": ("paraphrase", "repetition", "entrainment"),
}
TURN_FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **{
            kind: (f"{group}/{kind}-original_text.txt", f"{group}/{kind}-perturbed_text.txt")
            for group, kinds in _GROUPS.items()
            for kind in kinds
        },
        "nonentailment": ("rel/entailment_text.txt", "rel/nonentailment_text.txt"),
    }
)
"""Kind to the files of the better and of the worse responses, below `turn_level`."""
MOST_PAIRS = 200
"""Largest number of pairs of a kind in `turn_pairs`: its interval is then at most 14 points wide."""
FED_FILE = "fed_coherent_original.json"
FED_FILES: Mapping[str, str] = MappingProxyType(
    {
        "order shuffled": "coh/fed-ordershuffle_text.txt",
        "one turn replaced": "coh/fed-uttrep_text.txt",
        "two turns replaced": "coh/fed-rep-2utt_text.txt",
        "three turns replaced": "coh/fed-rep-3utt_text.txt",
        "boring": "div/fed-boring_text.txt",
        "content reduced": "div/fed-content-reduce_text.txt",
        "repeats the other": "eng/fed-repeat-other_text.txt",
        "repeats itself": "eng/fed-repeat-self_text.txt",
    }
)
"""Kind to the file of FED's dialogues that are worse by it, below `dialogue_level`."""
DECODE, DECODE_FILES = "contradicts itself", ("eng/decode-consistent_text.txt", "eng/decode-contradiction_text.txt")
"""The kind of DECODE's dialogues, and the files of the better and of the worse ones, below `dialogue_level`."""


def turn_pairs() -> list[ContrastPair]:
    """Read the pairs of responses, of each kind at most `MOST_PAIRS`, at even distances in its files.

    Rows are left out that are equal in both files, or whose contexts differ or are empty, and all but the first of those whose
    contexts open alike.
    """
    folder = data_folder() / "robustness" / "turn_level"
    found: list[ContrastPair] = []
    for kind, files in TURN_FILES.items():
        of: dict[str, ContrastPair] = {}
        for better, worse in zip(*(_rows(folder / file) for file in files), strict=True):
            context = better[:-1]
            if context and context == worse[:-1] and better != worse:
                id = opening_key(context)
                items = (Example.from_texts(context, row[-1], id=f"{id}/{kind}") for row in (better, worse))
                of.setdefault(id, ContrastPair(id, kind, *items))
        pairs, n = list(of.values()), min(MOST_PAIRS, len(of))
        found += [pairs[place * len(pairs) // n] for place in range(n)]
    return found


def dialogue_pairs() -> list[ContrastPair]:
    """Read the pairs of whole dialogues: FED's with the first that each was made into, of a kind; DECODE's with their own ends.

    Speakers are left out: FED's dialogues have none.
    """
    folder = data_folder() / "robustness" / "dialogue_level"
    originals = checked(read_json(folder / FED_FILE), list[list[str]], str(folder / FED_FILE), advice="Fetch it again.")
    found: list[ContrastPair] = []
    for kind, file in FED_FILES.items():
        rows = _spoken(folder / file)
        # Of most files five rows after another are made of one dialogue; of this one each fortieth row.
        firsts = rows[: len(originals)] if kind == "repeats itself" else rows[:: len(rows) // len(originals)]
        found += [_dialogues(f"fed {n}", kind, *both) for n, both in enumerate(zip(originals, firsts, strict=True))]
    decode = zip(*(_spoken(folder / file) for file in DECODE_FILES), strict=True)
    return [*found, *(_dialogues(f"decode {n}", DECODE, *both) for n, both in enumerate(decode))]


def _rows(path: Path) -> list[list[str]]:
    """The turns of each row."""
    return [line.split("\t")[1:] for line in read_text(path).rstrip("\n").split("\n")]


def _spoken(path: Path) -> list[list[str]]:
    """The turns of each row without the names of those who speak."""
    return [[split_speaker(turn)[1] for turn in row] for row in _rows(path)]


def _dialogues(id: str, kind: str, better: Sequence[str], worse: Sequence[str]) -> ContrastPair:
    return ContrastPair(id, kind, *(Dialogue(f"{id}/{kind}", tuple(map(Turn, texts))) for texts in (better, worse)))
