"""BLEU, chrF, ROUGE and METEOR: the packages' own values, by hand where it is short."""

from __future__ import annotations

from typing import Any

import nltk
import pytest
import sacrebleu
from nltk.stem import PorterStemmer
from nltk.tokenize import wordpunct_tokenize
from nltk.translate.meteor_score import meteor_score
from rouge_score.rouge_scorer import RougeScorer

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.scores import Reason, Scores, Unscored
from dialeval_plugin.methods.baselines import overlap, references
from dialeval_plugin.methods.baselines.overlap import Bleu, Chrf, Meteor, Rouge
from tests.refusals import refusal, refused

PAIRS = [
    ("The plan is to meet on Sunday.", ["We plan to meet on Sunday.", "Sunday it is, the plan is fixed."]),
    ("I don't know. It's late...", ["I do not know, it is late."]),
    ("Yes.", ["Yes, of course!", "No."]),
]


def example(response: str, references: list[str], id: str = "0") -> Example:
    return Example.from_texts(["Hello."], response, references=references, id=id)


EXAMPLES = [example(*pair, id=str(number)) for number, pair in enumerate(PAIRS)]


def one(scores: Scores) -> dict[str, Any]:
    (row,) = scores.rows()
    return row


def test_bleu_is_sacrebleus_sentence_bleu() -> None:
    scores = Bleu().score(EXAMPLES)
    expected = [sacrebleu.sentence_bleu(response, references).score for response, references in PAIRS]
    assert scores.columns["bleu_4"] == pytest.approx(expected, abs=1e-9)
    assert scores.main == "bleu_4"
    assert len({*expected}) == len(expected)


def test_bleu_by_hand() -> None:
    row = one(Bleu(1).score([example("the the cat", ["the cat sat", "a dog"])]))
    # "the" counts once, as in the reference; the nearest reference is as long as the response.
    assert row["bleu_1"] == pytest.approx(100 * 2 / 3)
    # Of two bigrams one, "the cat".
    assert row["bleu_2"] == pytest.approx(100 * (2 / 3 * 1 / 2) ** 0.5)


def test_every_order_of_bleu_is_a_column_and_the_one_asked_for_comes_first() -> None:
    for n in range(1, 5):
        scores = Bleu(n).score(EXAMPLES)
        assert scores.main == f"bleu_{n}"
        assert sorted(scores.columns) == ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "n_references_equal"]
        assert scores.columns["bleu_3"] == Bleu().score(EXAMPLES).columns["bleu_3"]


@pytest.mark.parametrize("order", [0, 2])
def test_chrf_is_sacrebleus(order: int) -> None:
    expected = [sacrebleu.sentence_chrf(response, references, word_order=order).score for response, references in PAIRS]
    assert Chrf(word_order=order).score(EXAMPLES).values == pytest.approx(expected, abs=1e-9)


def test_rouge_takes_the_best_reference_of_each_kind() -> None:
    scores = Rouge().score(EXAMPLES)
    host = RougeScorer(["rouge1", "rouge2", "rougeL"])
    for kind, name in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
        expected = [
            max(host.score(reference, response)[name].fmeasure for reference in references) for response, references in PAIRS
        ]
        assert scores.columns[kind] == pytest.approx(expected, abs=1e-9)
    assert scores.main == "rouge_l"
    # Two of three words of the response in a sequence of the reference's three.
    assert Rouge().score([example("a big cat", ["a cat sat"])]).values == pytest.approx((2 / 3,))
    assert [Rouge(stem=stem).score([example("plans", ["planned"])]).values for stem in (True, False)] == [(1,), (0,)]


def test_rouge_reads_letters_and_digits_only() -> None:
    for what, response, reference in (("the response", "🙂", "Fine."), ("every reference", "Fine.", "🙂")):
        row = one(Rouge().score([example(response, [reference])]))
        detail = f"{what} is without the letters a to z and digits, all that ROUGE reads"
        assert (row["unscored"], row["detail"]) == ("empty_input", detail)
    assert one(Rouge().score([example("Fine.", ["🙂", "Fine, thanks."])]))["rouge_l"] == pytest.approx(2 / 3)


class Synonyms:
    """A WordNet of one pair."""

    def synsets(self, word: str) -> list[Any]:
        return [self] if word in {"child", "kid"} else []

    def lemmas(self) -> list[Any]:
        return [Lemma("child"), Lemma("kid")]

    def get_version(self) -> str:
        return "9.9"


class Lemma:
    def __init__(self, text: str) -> None:
        self.text = text

    def name(self) -> str:
        return self.text


def test_meteor_by_hand() -> None:
    # Two words match (one by its stem) in one chunk: P = 1, R = 2/3, F = P R / (0.9 P + 0.1 R), penalty 0.5 (1/2)^3.
    expected = (2 / 3) / (0.9 + 0.1 * 2 / 3) * (1 - 0.5 * 0.5**3)
    row = one(Meteor(synonyms=False).score([example("cats sat", ["the cat sat"])]))
    assert row["meteor"] == pytest.approx(expected, abs=1e-9)


def test_meteor_is_nltks_and_synonyms_are_its_third_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_wordnet", Synonyms)
    item = example("A kid slept.", ["The child slept.", "Nobody came."])
    references = [wordpunct_tokenize(reference) for reference in item.references]
    found = {}
    for synonyms, wordnet in ((True, Synonyms()), (False, overlap._NO_SYNONYMS)):
        scores = Meteor(synonyms=synonyms).score([item])
        host = meteor_score(references, wordpunct_tokenize(item.response.text), stemmer=PorterStemmer(), wordnet=wordnet)
        assert scores.values == (pytest.approx(host, abs=1e-9),)
        found[synonyms] = (scores.values[0], str(scores.signature))
    assert found[True][0] > found[False][0]
    assert "|stages:exact,stem,synonyms|words:wordpunct|wordnet:9.9|" in found[True][1]
    assert "|stages:exact,stem|words:wordpunct|nltk:" in found[False][1]


def test_without_wordnet_meteor_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [])
    with refused(
        "meteor: nltk's WordNet is not on this machine. Run `python -m nltk.downloader wordnet`, "
        "or pass synonyms=False, which compares equal words and stems only and needs no data.",
        MissingPrerequisite,
    ):
        Meteor()


def test_orders_that_there_are_not_are_refused() -> None:
    assert refusal(Bleu, 5) == "bleu: n is 5. Give a whole number from 1 to 4."
    assert refusal(Chrf, word_order=-1) == "chrf: word_order is -1. Give a whole number from 0."


def test_the_signature_holds_sacrebleus_own() -> None:
    for scorer, begin in (
        (Bleu(2, smooth="floor"), "method:bleu|n:2|sacrebleu:nrefs:var,case:mixed,eff:yes,tok:13a,smooth:floor[0.10]"),
        (Chrf(), "method:chrf|sacrebleu:nrefs:var,case:mixed,eff:yes,nc:6,nw:0,space:no"),
    ):
        assert str(scorer.score(EXAMPLES).signature).startswith(f"{begin},version:{sacrebleu.__version__}|level:turn|")


def test_d12_a_text_too_long_for_rouge_has_no_score_and_its_neighbours_keep_theirs() -> None:
    """FAULTS D12: 200,000 words took 14.5 GB, and the kernel ended the run."""
    long = "tea " * 4_001
    items = [example("tea", ["tea"]), example(long, ["tea"], "b"), example("tea", ["tea", long], "c")]
    scores = Rouge().score(items)

    end = "has 4001 words, more than the 4000 that are compared"
    assert scores.unscored == {
        1: Unscored(Reason.CONTEXT_TOO_LONG, f"the response {end}"),
        2: Unscored(Reason.CONTEXT_TOO_LONG, f"a reference {end}"),
    }
    assert scores.values[0] == 1.0


def test_up_to_the_limit_rouge_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "LONGEST_COMPARED", 3)
    assert Rouge().score([example("tea, tea tea", ["tea! ", "one two three"])]).values == (0.5,)
    assert Rouge().score([example("tea, tea tea", ["one two three four"])]).unscored_by_reason == {"context_too_long": 1}


@pytest.mark.parametrize("scorer", [Bleu(), Chrf(), Meteor(synonyms=False)])
def test_d12_the_others_are_linear_and_take_long_texts(scorer: Any) -> None:
    text = "tea and cats " * 5_000
    assert scorer.score([example(text, [text])]).n_scored == 1
