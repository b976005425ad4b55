"""What every baseline owes: empty inputs, one example at a time, nothing beyond its range."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.registry import scorer_factory, scorer_names
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.baselines.bartscore import BartScore
from dialeval_plugin.methods.baselines.bertscore import BertScore
from dialeval_plugin.methods.baselines.controls import RandomScore, ResponseLength
from dialeval_plugin.methods.baselines.embedding import EmbeddingOverlap, SentenceSimilarity
from dialeval_plugin.methods.baselines.overlap import Bleu, Chrf, Meteor, Rouge
from dialeval_plugin.methods.baselines.references import ReferenceScorer
from dialeval_plugin.methods.baselines.unieval import UniEval
from tests.tiny_seq2seq_models import write_tiny_bart, write_tiny_t5


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bart(tmp_path_factory.mktemp("bart"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_t5(tmp_path_factory.mktemp("t5"))


Make = Callable[[Path, Path, Path], Scorer]
WITH_REFERENCES: dict[str, Make] = {
    "bleu": lambda encoder, bart, t5: Bleu(),
    "chrf": lambda encoder, bart, t5: Chrf(),
    "rouge": lambda encoder, bart, t5: Rouge(),
    "meteor": lambda encoder, bart, t5: Meteor(synonyms=False),
    "embedding_overlap": lambda encoder, bart, t5: EmbeddingOverlap(encoder=str(encoder)),
    "sentence_similarity": lambda encoder, bart, t5: SentenceSimilarity(str(encoder), device="cpu"),
    "bertscore": lambda encoder, bart, t5: BertScore(str(encoder), num_layers=1, device="cpu"),
    "bartscore f": lambda encoder, bart, t5: BartScore(str(bart), direction="f_score", device="cpu"),
}
WITHOUT: dict[str, Make] = {
    "bartscore": lambda encoder, bart, t5: BartScore(str(bart), device="cpu"),
    "unieval": lambda encoder, bart, t5: UniEval(model=str(t5), device="cpu"),
    "unieval e": lambda encoder, bart, t5: UniEval("engagingness", model=str(t5), device="cpu"),
    "response_length": lambda encoder, bart, t5: ResponseLength(),
    "random": lambda encoder, bart, t5: RandomScore(),
}
ALL = {**WITH_REFERENCES, **WITHOUT}


def examples() -> list[Example]:
    """Dialogues of the embedded corpus with one to three references and a fact."""
    found = []
    for number, item in enumerate(mini.read_response_sets("test")[:8]):
        found.append(
            Example.from_texts(
                item.context,
                item.positive[0],
                id=str(number),
                references=item.positive[1 : 2 + number % 3],
                facts=[item.positive[-1]],
            )
        )
    return found


def test_every_baseline_of_the_package_is_here() -> None:
    ours = {name for name in scorer_names() if scorer_factory(name).__module__.startswith("dialeval_plugin.methods.baselines")}
    assert {name.partition(" ")[0] for name in ALL} == ours


@pytest.mark.parametrize("name", ALL)
def test_a_score_depends_on_its_example_alone(name: str, tiny_encoder: Path, bart: Path, t5: Path) -> None:
    scorer = ALL[name](tiny_encoder, bart, t5)
    items = examples()
    together = scorer.score(items)
    assert together.n_unscored == 0
    backwards = scorer.score(items[::-1])
    for column, values in together.columns.items():
        assert backwards.columns[column][::-1] == pytest.approx(values, abs=1e-5), column
        alone = [scorer.score([item]).columns[column][0] for item in items]
        assert alone == pytest.approx(values, abs=1e-5), column
    low, high = scorer.range
    assert all(low <= value <= high for value in together.values if value is not None)
    assert len({round(value, 9) for value in together.values if value is not None}) > 1
    json.dumps(together.to_dict(), allow_nan=False)
    assert str(together.signature).startswith(f"method:{name.partition(' ')[0]}|")


@pytest.mark.parametrize("name", ALL)
def test_what_is_empty_has_no_score(name: str, tiny_encoder: Path, bart: Path, t5: Path) -> None:
    scorer = ALL[name](tiny_encoder, bart, t5)
    given = {"references": ["Fine, and you?"], "facts": ["They like tea."]}
    blanks = [Example.from_texts(["Hi."], text, id=repr(text), **given) for text in ("", " \n", "\u200b")]
    scores = scorer.score([*blanks, Example.from_texts(["Hi."], "a", id="short", **given)])
    assert {row.reason.value for row in scores.unscored.values()} == {"empty_input"}
    assert {row.detail for row in scores.unscored.values()} == {"the response has no visible character"}
    assert sorted(scores.unscored) == [0, 1, 2]


@pytest.mark.parametrize("name", WITH_REFERENCES)
def test_without_a_reference_there_is_no_score_and_not_0(name: str, tiny_encoder: Path, bart: Path, t5: Path) -> None:
    scorer = WITH_REFERENCES[name](tiny_encoder, bart, t5)
    items = [Example.from_texts(["Hi."], "Hello.", id="none"), Example.from_texts(["Hi."], "Hello.", references=["", " "])]
    scores = scorer.score(items)
    missing = Unscored(next(iter(scores.unscored.values())).reason, "there is no reference with a visible character")
    assert dict(scores.unscored) == {0: missing, 1: missing}
    assert scores.values == (None, None)
    # A blank reference beside a real one is none.
    kept, alone = (
        scorer.score([Example.from_texts(["Hi."], "Hello.", references=references)]).values[0]
        for references in (["", "Hello there."], ["Hello there."])
    )
    assert kept == alone


@pytest.mark.parametrize("name", [name for name in WITH_REFERENCES if not name.startswith("bartscore")])
def test_a_response_that_is_its_reference_is_scored_and_counted(name: str, tiny_encoder: Path, bart: Path, t5: Path) -> None:
    scorer = WITH_REFERENCES[name](tiny_encoder, bart, t5)
    assert isinstance(scorer, ReferenceScorer)
    references = ["Good to see you.", "Who are you?", "Good  to see you."]
    scores = scorer.score([Example.from_texts(["Hi."], "Good to see you. ", references=references)])
    assert scores.columns["n_references_equal"] == (2.0,)
    # METEOR's penalty leaves less than 1 even for equal texts.
    assert scores.values[0] == pytest.approx(scorer.range[1], rel=1e-2)


@pytest.mark.parametrize("name", ALL)
def test_control_characters_pictures_and_foreign_letters_raise_nothing(
    name: str, tiny_encoder: Path, bart: Path, t5: Path
) -> None:
    scorer = ALL[name](tiny_encoder, bart, t5)
    texts = ["🙂", "\x00a", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc", "a\u2028b", "[SEP] </s> <s> {question}", "\u00e9" * 300]
    items = [
        Example.from_texts(["Hi."], text, id=str(number), references=[text, "b"], facts=["c"])
        for number, text in enumerate(texts)
    ]
    scores = scorer.score(items)
    assert {row.reason.value for row in scores.unscored.values()} <= {"empty_input", "context_too_long"}
    assert scores.n_scored >= 4
