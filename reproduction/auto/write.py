"""The register of conversations: fits the weights of `auto`, and writes how often they are right.

    python -m reproduction.auto.write --document reproduction/auto/NOTES.md
    python -m reproduction.auto.write --weights dialeval_plugin/methods/auto/register.json

Weights are fitted on half of the conversations of sets whose licences allow commercial use, and measured on the other half and
on sets that nothing was fitted on. No rating is read.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.corpora.registry import read_dialogues
from dialeval_plugin.methods.auto.scorer import Register, opening_features, opening_of, register_of
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from reproduction.data import data_folder
from reproduction.documents import script_parser, write_tables
from reproduction.general.logs import LOGS
from reproduction.pretrained.build import CORPORA

FITTED: Mapping[str, str] = {
    "personachat": "CC BY 4.0",
    "topical_chat": "CDLA-Sharing-1.0",
    "convai1": "Apache-2.0",
    "dstc9": "MIT",
    "alpaca_en_demo": "Apache-2.0",
    "dpo_en_demo": "Apache-2.0",
    "kto_en_demo": "Apache-2.0",
    "oasst_en_100_tree": "Apache-2.0",
}
"""Sets with their licences."""
OF_BOTS = tuple(LOGS)
PLAIN = ("dailydialog", "empathetic_dialogues", "personachat", "topical_chat", "dream", "esconv")
MOST = 1000
"""Conversations of a set that are fitted on; sets count alike, and so do the two registers."""
FIRST_SENTENCE = 0.2
"""Weight of a copy of each conversation whose answer has one sentence: how long an answer is does not decide."""
RULE = "answer_offers", 20.0
"""An answer that offers help in an assistant's words decides: chats of the sets lack them, and logs of assistants begin so."""
ROWS = 2000.0
"""Weight of each register in the fit, as a number of conversations: it limits how far weights move from 0."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def social_sets(data: Path) -> dict[str, list[Dialogue]]:
    """Return social conversations by their sets."""
    files = {name: read_json(CORPORA)[name]["files"] for name in PLAIN}
    return {
        **{name: [one for file in files[name] for one in read_dialogues(data / file)] for name in PLAIN},
        **{name: [Dialogue(id, tuple(turns)) for id, turns in LOGS[name](data)] for name in OF_BOTS},
        "dialogues_halie": [_dialogue(row["turns"]) for row in _rows(data, "dialogues_halie.jsonl.gz")],
    }


def assistant_sets(data: Path) -> dict[str, list[Dialogue]]:
    """Return conversations with assistants by their sets; pairs of answers are two conversations."""
    found = {
        "alpaca_en_demo": [
            [f"{row['instruction']}\n{row['input']}".strip(), row["output"]] for row in _rows(data, "alpaca_en_demo.json")
        ],
        "dpo_en_demo": [
            [*(turn["value"] for turn in row["conversations"]), row[which]["value"]]
            for row in _rows(data, "dpo_en_demo.json")
            for which in ("chosen", "rejected")
        ],
        "kto_en_demo": [[turn["content"] for turn in row["messages"]] for row in _rows(data, "kto_en_demo.json")],
        "oasst_en_100_tree": [
            texts for row in _rows(data, "oasst_en_100_tree.jsonl") for texts in _branches(row["prompt"]) if len(texts) > 1
        ],
        "alpaca_eval_preferences": [
            [row["instruction"], answer["response"]]
            for row in _rows(data, "alpaca_eval_preferences.jsonl.gz")
            for answer in row["responses"][::6]
        ],
        "pairs_pandalm": [
            [*row["context"], row[which]] for row in _rows(data, "pairs_pandalm.jsonl.gz") for which in ("better", "worse")
        ],
        "shepherd_human": [[row["question"], row["answer"]] for row in _rows(data, "shepherd_human.jsonl")],
        **{name: _longest(_rows(data, f"{name}.jsonl.gz")) for name in ("rated_uss_mwoz", "rated_uss_sgd", "rated_uss_redial")},
    }
    return {name: [_dialogue(texts) for texts in of_set] for name, of_set in found.items()}


def _rows(data: Path, name: str) -> list[dict[str, Any]]:
    raw = (data / "assistant" / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    rows: list[dict[str, Any]] = (
        json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.split("\n") if line]
    )
    return rows


def _branches(message: Mapping[str, Any], before: Sequence[str] = ()) -> Iterator[list[str]]:
    texts = [*before, message["text"]]
    if not message["replies"]:
        yield texts
    for reply in message["replies"]:
        yield from _branches(reply, texts)


def _longest(rows: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """The whole of each conversation, of which every row has a beginning."""
    found: dict[str, list[str]] = {}
    for row in rows:
        texts = [*row["context"], row["response"]]
        found[row["cluster"]] = max(found.get(row["cluster"], []), texts, key=len)
    return list(found.values())


def _dialogue(texts: Sequence[str]) -> Dialogue:
    return Dialogue("", tuple(map(Turn, texts)))


def half(dialogues: Sequence[Dialogue], number: int) -> list[Dialogue]:
    """Return one of two halves (0 or 1) of conversations of two turns and more; equal first turns are in one of them."""
    return [
        one for one in dialogues if len(one.turns) > 1 and int(sha256(one.turns[0].text.encode()).hexdigest(), 16) % 2 == number
    ]


def fit(sets: Mapping[Register, Mapping[str, Sequence[Dialogue]]]) -> dict[str, float]:
    """Return the weights by the names of the features, and the `offset`."""
    rows, labels, counts = [], [], []
    for register, of_register in sets.items():
        fitted = [name for name in of_register if name in FITTED]
        for name in fitted:
            chosen = half(of_register[name], 0)
            chosen = random.Random(name).sample(chosen, min(MOST, len(chosen)))
            for one in chosen:
                opening = opening_of(one)
                first = opening._replace(answer=_SENTENCE.split(opening.answer.strip())[0])
                for text, weight in ((opening, 1.0), (first, FIRST_SENTENCE)):
                    rows.append({**opening_features(text), "offset": 1.0})
                    labels.append(float(register == "assistant"))
                    counts.append(weight * ROWS / len(fitted) / len(chosen))
    columns = np.array([list(row.values()) for row in rows])
    found = logistic_regression(columns, np.array(labels), start=np.zeros(columns.shape[1]), row_weights=np.array(counts))
    return dict(zip(rows[0], (round(float(weight), 3) for weight in found), strict=True)) | dict([RULE])


def write_weights(path: Path, sets: Mapping[Register, Mapping[str, Sequence[Dialogue]]]) -> None:
    """Replace the weights in the file, whose patterns stay."""
    weights = fit(sets)
    settings = {**read_json(path), "learnt_from": FITTED, "offset": weights.pop("offset"), "weights": weights}
    write_text(path, to_json(settings, indent=1) + "\n")


def table(sets: Mapping[Register, Mapping[str, Sequence[Dialogue]]]) -> Table:
    """Return the share of right decisions of each set, on what nothing was fitted on."""
    rows: list[TableRow] = []
    for register, of_register in sets.items():
        for name, dialogues in of_register.items():
            measured = half(dialogues, 1) if name in FITTED else [one for one in dialogues if len(one.turns) > 1]
            right = float(np.mean([register_of(one) == register for one in measured]))
            fitted = "its other half" if name in FITTED else "no"
            rows.append({"set": name, "register": register, "n": len(measured), "right": right, "fitted": fitted})
    columns = [
        named_column("set", is_number=False),
        named_column("register", is_number=False),
        named_column("n", 0),
        named_column("right"),
        named_column("fitted", is_number=False),
    ]
    return Table(rows, columns)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--weights", type=Path, help="file whose weights are fitted anew; nothing is measured then")
    options = parser.parse_args(arguments)
    data = data_folder()
    sets: dict[Register, Mapping[str, Sequence[Dialogue]]] = {"social": social_sets(data), "assistant": assistant_sets(data)}
    if options.weights is not None:
        write_weights(options.weights, sets)
    else:
        write_tables(options.document, {"registers": table(sets)})


if __name__ == "__main__":
    main()
