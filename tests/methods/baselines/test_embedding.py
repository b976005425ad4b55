"""Word and sentence embeddings: Liu et al.'s three formulas by hand, vector files, and BERTScore as its package computes it."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.baselines import references
from dialeval_plugin.methods.baselines.bertscore import BertScore
from dialeval_plugin.methods.baselines.embedding import (
    EmbeddingOverlap,
    EncoderVectors,
    FileVectors,
    SentenceSimilarity,
    average_similarity,
    extrema_similarity,
    greedy_similarity,
)
from tests.refusals import refused

VECTORS = """\
tea 1.0 0.0
rain 0.0 2.0
snow -3.0 1.0
. . 0.5 0.5
nothing 0.0 0.0
tea 9.0 9.0
"""
LINE_2 = (b"tea 1 2\nrain 1\n", b"tea 1 2\nrain 1 x\n", b"tea 1 2\n\nrain 1 2\n")
"""Files whose second line is malformed."""


def example(response: str, *references: str) -> Example:
    return Example.from_texts(["Hello."], response, references=references)


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS, encoding="utf-8")
    return path


def test_the_three_formulas_by_hand() -> None:
    one = np.array([[1.0, 0.0], [0.0, 2.0]])  # tea, rain
    other = np.array([[-3.0, 1.0]])  # snow
    root = 10**0.5
    # Means (0.5, 1) and (-3, 1).
    assert average_similarity(one, other) == pytest.approx((-1.5 + 1) / (1.25**0.5 * root))
    # Extremes (1, 2) and (-3, 1).
    assert extrema_similarity(one, other) == pytest.approx((-3 + 2) / (5**0.5 * root))
    # tea: -3 / root, rain: 1 / root; the other way round the better of both.
    assert greedy_similarity(one, other) == pytest.approx(((-3 / root + 1 / root) / 2 + 1 / root) / 2)
    assert greedy_similarity(one, other) == greedy_similarity(other, one)
    # Extremes that are equally far count as the lower one.
    assert extrema_similarity(np.array([[2.0], [-2.0]]), np.array([[-1.0]])) == pytest.approx(1)


def test_words_come_from_the_file_in_lower_case_and_the_best_reference_counts(vectors: Path) -> None:
    (row,) = EmbeddingOverlap("average", vectors=str(vectors)).score([example("TEA?", "rain", "Snow, tea")]).rows()
    # Of "snow tea" the mean is (-1, 0.5); rain is orthogonal to tea and so nearer.
    assert row["average"] == pytest.approx(0)
    assert row["greedy"] == pytest.approx((1 + (1 - 3 / 10**0.5) / 2) / 2)
    assert list(row) == ["id", "average", "extrema", "greedy", "n_references_equal"]


def test_words_without_a_vector_leave_no_score_and_a_vector_of_zeros_resembles_nothing(vectors: Path) -> None:
    items = [example("Coffee!", "tea"), example("tea", "coffee", "milk"), example("nothing", "tea")]
    scores = EmbeddingOverlap(vectors=str(vectors)).score(items)
    details = {place: row.detail for place, row in scores.unscored.items()}
    assert details == {0: "no word of the response has a vector", 1: "no word of the references has a vector"}
    assert [scores.columns[name][2] for name in ("greedy", "average", "extrema")] == [0.0] * 3


def test_the_first_of_two_lines_counts_and_word2vecs_first_line_and_gzip_change_nothing(vectors: Path, tmp_path: Path) -> None:
    packed = tmp_path / "vectors.gz"
    packed.write_bytes(gzip.compress(b"6 2\n" + VECTORS.encode()))
    for path in (vectors, packed):
        found = FileVectors(path)
        assert found.of("tea").tolist() == [[1.0, 0.0]]
        assert found.of("snow").tolist() == [[-3.0, 1.0]]
        assert found.of("rain, rain").tolist() == [[0.0, 2.0], [0.0, 2.0]]
        assert found.of("?").shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((text, ":2: expected a word and 2 numbers, separated by single blanks.") for text in LINE_2),
        (b"tea 1 nan\n", ":1: expected a word and 2 numbers, separated by single blanks."),
        (b"tea 1 2\n\xff 1 2\n", ":2: is not UTF-8. Give vectors in text form, not word2vec's binary one."),
        *((text, ": is empty, expected a word and its numbers a line.") for text in (b"", b"2 2\n")),
        (
            None,
            ": cannot be read ([Errno 2] No such file or directory: '{path}'). "
            "Give a text file with a word and its numbers a line.",
        ),
    ],
)
def test_a_missing_or_malformed_file_is_one_message_with_its_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "vectors.txt"
    if content is not None:
        path.write_bytes(content)
    with refused(f"{path}{message.replace('{path}', str(path))}"):
        FileVectors(path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(VECTORS.encode())[:-12])
    with pytest.raises(
        InputError, match=r"cut\.gz: cannot be read \(.+\)\. Give a text file with a word and its numbers a line\.$"
    ):
        FileVectors(cut)


def test_an_encoders_vectors_are_its_input_embeddings(tiny_encoder: Path) -> None:
    encoder = SentenceTransformer(str(tiny_encoder), device="cpu")
    matrix = encoder[0].auto_model.get_input_embeddings().weight.detach().numpy()
    ids = encoder.tokenizer.convert_tokens_to_ids(["t", "e", "a"])
    found = EncoderVectors(str(tiny_encoder))
    assert found.of("tea") == pytest.approx(matrix[ids])
    # A special token in a text is letters.
    assert len(found.of("[SEP]")) == 5


def test_sources_exclude_each_other(vectors: Path) -> None:
    with refused("embedding_overlap: both vectors and encoder are given. Leave one of them out."):
        EmbeddingOverlap(vectors=str(vectors), encoder="x")


def test_sentence_similarity_is_the_cosine_of_the_encoders_vectors(tiny_encoder: Path) -> None:
    encoder = SentenceTransformer(str(tiny_encoder), device="cpu")
    response, *references = encoder.encode(["Good day.", "Good night.", "Why?"]).astype(np.float64)
    cosines = [float(response @ one / np.linalg.norm(response) / np.linalg.norm(one)) for one in references]
    scores = SentenceSimilarity(str(tiny_encoder), device="cpu").score([example("Good day.", "Good night.", "Why?")])
    assert scores.values == (pytest.approx(max(cosines), abs=1e-6),)
    assert "|window:256|" in str(scores.signature)


def test_bertscore_is_its_packages(tiny_encoder: Path) -> None:
    from bert_score import BERTScorer

    scorer = BertScore(str(tiny_encoder), num_layers=1, device="cpu")
    items = [example("Good day to you.", "Good night.", "Good day!"), example("Why not?", "Because."), example("No", "No")]
    host = BERTScorer(model_type=str(tiny_encoder), num_layers=1, device="cpu", use_fast_tokenizer=True)
    expected = host.score([item.response.text for item in items], [list(item.references) for item in items])
    scores = scorer.score(items)
    for name, values in zip(("precision", "recall", "f1"), expected, strict=True):
        assert scores.columns[f"bertscore_{name}"] == pytest.approx(values.tolist(), abs=1e-6)
    assert scores.main == "bertscore_f1"


@pytest.mark.parametrize("name", ["sentence_similarity", "bertscore"])
def test_texts_longer_than_the_encoders_window_are_counted(
    name: str, tiny_encoder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """TRIAL section 2, S1: the ends of long texts were not read, and nobody was told."""
    scorer = (
        SentenceSimilarity(str(tiny_encoder), device="cpu")
        if name == "sentence_similarity"
        else BertScore(str(tiny_encoder), num_layers=1, device="cpu")
    )
    fits, long = "x" * 256, "x" * 257
    texts = [(fits, fits), (long, fits), (fits, long, "y", long + "z"), ("y", f" {fits}")]
    scores = scorer.score([example(*given) for given in texts])
    # bert_score strips a text, sentence-transformers does not.
    blanks = 0.0 if name == "bertscore" else 1.0
    assert scores.columns["n_cut"] == (0.0, 1.0, 2.0, blanks)
    assert caplog.messages == [
        f"{name}: in {2 + blanks:.0f} of 4 examples a text is longer than 256 tokens; its end was not read"
    ]


def test_bertscore_reads_special_tokens_as_letters_and_cuts_what_is_too_long(tiny_encoder: Path) -> None:
    scorer = BertScore(str(tiny_encoder), num_layers=1, device="cpu")
    scores = scorer.score([example("a[SEP]b", "ab"), example("x" * 1000, "y"), example("x" * 300, "y")])
    assert scores.values[0] < 0.99  # type: ignore[operator]
    assert scores.values[1] == pytest.approx(scores.values[2], abs=1e-6)
    assert "|window:256|truncation:right|" in str(scores.signature)


def test_without_the_package_bertscore_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with refused(
        "scorer 'bertscore' needs bert_score, which cannot be imported (import of bert_score halted; None in sys.modules). "
        "Run `pip install 'dialeval-plugin[bertscore]'`.",
        MissingPrerequisite,
    ):
        BertScore("x", num_layers=1)


def test_bertscore_needs_a_layer_that_the_model_has(tiny_encoder: Path) -> None:
    with refused(
        f"bertscore: bert_score has tuned no layer for {str(tiny_encoder)!r}. "
        "Give num_layers, the number of the layer that embeds."
    ):
        BertScore(str(tiny_encoder))
    with refused(f"bertscore: Invalid num_layers: num_layers should be between 0 and 1 for {tiny_encoder}."):
        BertScore(str(tiny_encoder), num_layers=7)


@pytest.mark.parametrize(
    "make", [SentenceSimilarity, lambda name: BertScore(name, num_layers=1), lambda name: EmbeddingOverlap(encoder=name)]
)
def test_a_pickled_encoder_is_refused(make: Any, tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelLoadError, match=r"pytorch_model\.bin: pickled weights run code when they are read"):
        make(str(tmp_path))


@pytest.mark.parametrize("source", ["vectors", "encoder"])
def test_d12_a_text_too_long_has_no_score_and_its_neighbours_keep_theirs(
    source: str, vectors: Path, tiny_encoder: Path
) -> None:
    """FAULTS D12: 200,000 words asked for 298 GiB and ended the run."""
    options = {"vectors": str(vectors)} if source == "vectors" else {"encoder": str(tiny_encoder)}
    scorer = EmbeddingOverlap(**options)
    long = "tea " * 200_000
    scores = scorer.score([example("tea", "tea"), example(long, "tea"), example("tea", "tea", long)])

    end = "has 200000 words, more than the 4000 that are compared"
    assert scores.unscored == {
        1: Unscored(Reason.CONTEXT_TOO_LONG, f"the response {end}"),
        2: Unscored(Reason.CONTEXT_TOO_LONG, f"a reference {end}"),
    }
    assert scores.values[0] == pytest.approx(1.0)


def test_d12_a_word_of_many_pieces_is_as_long_as_they_are(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "LONGEST_COMPARED", 5)
    scorer = EmbeddingOverlap(encoder=str(tiny_encoder))
    (found,) = scorer.score([example("q,w.e,r.t", "tea")]).unscored.values()
    assert (found.reason, found.detail[:12]) == (Reason.CONTEXT_TOO_LONG, "the response")
    assert scorer.score([example("tea", "tea")]).n_scored == 1
