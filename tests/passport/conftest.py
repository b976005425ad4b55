"""Made-up labels of three people and scores of evaluators beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.labels.table import LabelTable, Scale, ScoreTable
from tests.cli.running import write_rows
from tests.leaderboard_files import HOSTILE

N, PER_CONVERSATION = 240, 3
SIGNATURE = "method:made-up|version:1"


class MadeUp:
    """240 responses of 80 conversations, each labelled 1 to 5 by three people who share most of what they see."""

    def __init__(self) -> None:
        generator = np.random.default_rng(3)
        conversations = np.arange(N) // PER_CONVERSATION
        self.quality = 0.5 * generator.normal(size=N // PER_CONVERSATION)[conversations] + generator.normal(size=N)
        self.noise = generator.normal(size=(N, 4))
        labels = np.clip((3 + self.quality[:, None] + 0.8 * self.noise[:, :3]).round(), 1, 5)
        said = [f"Turn {row}\nHow are you, {HOSTILE}?" for row in range(N)]
        texts = [(context, "word " * int(n)) for context, n in zip(said, generator.integers(3, 20, size=N), strict=True)]
        self.labels = LabelTable(
            source="labels.csv",
            ids=[f"c{row // PER_CONVERSATION}:{row}" for row in range(N)],
            labels=labels,
            scale=Scale("interval"),
            raters=("Ann", "Bob", "Cy"),
            clusters=[f"c{conversation}" for conversation in conversations],
            quality="overall",
            texts=texts,
        )

    def table(self, evaluator: str, noise: float, *, signature: str | None = None) -> ScoreTable:
        """The quality with so much noise; of infinite noise that alone."""
        scores = self.noise[:, 3] if np.isinf(noise) else self.quality + noise * self.noise[:, 3]
        clusters = list(self.labels.clusters or ())
        source = f"{evaluator}.jsonl"
        return ScoreTable(
            evaluator=evaluator, source=source, ids=self.labels.ids, scores=scores, clusters=clusters, signature=signature
        )


@pytest.fixture(scope="session")
def made_up() -> MadeUp:
    return MadeUp()


@pytest.fixture
def files(tmp_path: Path, made_up: MadeUp) -> Path:
    """A folder with `good.jsonl` of `dialeval score`, `again.jsonl`, `poor.jsonl` and `labels.jsonl`."""
    meta = {"schema_version": 1, "main": "score", "signature": SIGNATURE, "orientation": "higher", "level": "turn"}
    for name, noise, beside in (("good", 0.3, meta), ("again", 0.35, None), ("poor", 4.0, None)):
        scores = made_up.table(name, noise).scores.tolist()
        rows = [{"id": id, "score": score} for id, score in zip(made_up.labels.ids, scores, strict=True)]
        path = write_rows(tmp_path / f"{name}.jsonl", rows)
        if beside:
            path.with_name(f"{path.name}.meta.json").write_text(json.dumps(beside), encoding="utf-8")
    labels = zip(made_up.labels.ids, made_up.labels.labels.tolist(), made_up.labels.texts or (), strict=True)
    rows = [
        {"id": id, **dict(zip(("rater_1", "rater_2", "rater_3"), of, strict=True)), "context": before, "response": said}
        for id, of, (before, said) in labels
    ]
    write_rows(tmp_path / "labels.jsonl", rows)
    return tmp_path
