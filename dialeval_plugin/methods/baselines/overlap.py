"""Word overlap with references: BLEU and chrF (sacrebleu), ROUGE (rouge_score), METEOR (nltk)."""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Interval
from nltk.stem import PorterStemmer
from nltk.tokenize import wordpunct_tokenize
from nltk.translate.meteor_score import meteor_score
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer
from sacrebleu.metrics import BLEU, CHRF

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.registry import checked_init
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue

from .references import Compared, OneByOneScorer, too_long

Smoothing: TypeAlias = Literal["exp", "floor", "add-k", "none"]
RougeKind: TypeAlias = Literal["rouge_1", "rouge_2", "rouge_l"]

LONGEST_NGRAM = 4
NgramOrder: TypeAlias = Annotated[int, Interval(ge=1, le=LONGEST_NGRAM)]

_NO_SYNONYMS = SimpleNamespace(synsets=lambda _: [], get_version=lambda: None)
"""A WordNet without words, which leaves METEOR its first two stages."""
_ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


class Bleu(OneByOneScorer):
    """BLEU of one response (Papineni et al. 2002), as sacrebleu computes it for sentences, in [0, 100].

    Several references are one set of n-grams, as in the paper. Orders above the length of the response do not count
    (sacrebleu's effective order). Columns: `bleu_<n>` first, then the other orders.

    Args:
        n: length of the longest n-grams, 1 to 4.
        smooth: smoothing of a precision of 0, see sacrebleu; "exp" halves the value for each such order.
    """

    name: ClassVar[str] = "bleu"
    citation: ClassVar[str] = bibtex("papineni2002bleu")
    range = (0.0, 100.0)

    @checked_init
    def __init__(self, n: NgramOrder = LONGEST_NGRAM, *, smooth: Smoothing = "exp") -> None:
        self.n = n
        self._metrics = {
            f"bleu_{order}": BLEU(max_ngram_order=order, smooth_method=smooth, effective_order=True)
            for order in dict.fromkeys((n, *range(1, LONGEST_NGRAM + 1)))
        }
        self.set_measures(*self._metrics)

    def compare_one(self, compared: Compared) -> Row:
        """Compare a response with all of its references at once."""
        response, references = compared.response, list(compared.references)
        return {name: metric.sentence_score(response, references).score for name, metric in self._metrics.items()}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, order and sacrebleu's signature."""
        return {"method": self.name, "n": self.n, "sacrebleu": _sacrebleu_signature(self._metrics[f"bleu_{self.n}"])}


class Chrf(OneByOneScorer):
    """ChrF of one response (Popović 2015), as sacrebleu computes it for sentences, in [0, 100]; the best reference counts.

    Args:
        word_order: length of the longest word n-grams that are added to the character n-grams: 0 is chrF, 2 is chrF++.
    """

    name: ClassVar[str] = "chrf"
    citation: ClassVar[str] = bibtex("popovic2015chrf")
    range = (0.0, 100.0)

    @checked_init
    def __init__(self, *, word_order: Annotated[int, Ge(0)] = 0) -> None:
        self._metric = CHRF(word_order=word_order)
        self.set_measures("chrf")

    def compare_one(self, compared: Compared) -> Row:
        """Compare a response with each of its references."""
        return {"chrf": self._metric.sentence_score(compared.response, list(compared.references)).score}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method and sacrebleu's signature."""
        return {"method": self.name, "sacrebleu": _sacrebleu_signature(self._metric)}


class Rouge(OneByOneScorer):
    """ROUGE of one response (Lin 2004), F1 as rouge_score computes it, in [0, 1]; the best reference counts for each kind.

    Columns: `kind`, then the other two of `rouge_1`, `rouge_2`, `rouge_l`. The package reads the letters a to z and digits
    only: a response without them has no score (`empty_input`), and a reference without them does not count. There is no score
    either if a text has more than `LONGEST_COMPARED` words (`context_too_long`).

    Args:
        kind: kind whose value is the score; the values of the others are columns.
        stem: compare words reduced by Porter's stemmer.
    """

    name: ClassVar[str] = "rouge"
    citation: ClassVar[str] = bibtex("lin2004rouge")

    @checked_init
    def __init__(self, kind: RougeKind = "rouge_l", *, stem: bool = False) -> None:
        self.kind, self.stem = kind, stem
        self.set_measures(*dict.fromkeys((kind, *_ROUGE)))
        self._tokenizer = DefaultTokenizer(stem)
        self._scorer = RougeScorer(list(_ROUGE.values()), tokenizer=self._tokenizer)

    def compare_one(self, compared: Compared) -> Row:
        """Compare a response with each of its references."""
        response = self._tokenizer.tokenize(compared.response)
        words = {reference: self._tokenizer.tokenize(reference) for reference in compared.references}
        references = [reference for reference in compared.references if words[reference]]
        for texts, what in ((response, "the response"), (references, "every reference")):
            if not texts:
                return Unscored(Reason.EMPTY_INPUT, f"{what} is without the letters a to z and digits, all that ROUGE reads")
        if refused := too_long(response, words.values()):
            return refused
        scores = self._scorer.score_multi(references, compared.response)
        return {kind: scores[_ROUGE[kind]].fmeasure for kind in self.measures}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, kind, stemming and version of the package."""
        return {"method": self.name, "kind": self.kind, "stem": self.stem, "rouge_score": metadata.version("rouge_score")}


class Meteor(OneByOneScorer):
    """METEOR of one response (Banerjee and Lavie 2005), as nltk computes it, in [0, 1]; the best reference counts.

    Text is split by nltk's `wordpunct_tokenize`: `word_tokenize` needs data, without which it leaves a full stop within a
    response attached to its word.

    Args:
        synonyms: match WordNet's synonyms after equal words and equal stems; nltk looks up the stems of the remaining words.
            Without synonyms no data are needed.

    Raises:
        MissingPrerequisite: nltk's WordNet is not on this machine.
    """

    name: ClassVar[str] = "meteor"
    needs = ("references", "WordNet")
    citation: ClassVar[str] = bibtex("banerjee2005meteor")

    @checked_init
    def __init__(self, *, synonyms: bool = True) -> None:
        self.synonyms = synonyms
        self._wordnet = _wordnet() if synonyms else _NO_SYNONYMS
        self._stemmer = PorterStemmer()
        self.set_measures("meteor")

    def compare_one(self, compared: Compared) -> Row:
        """Compare a response with each of its references."""
        response, *references = map(wordpunct_tokenize, compared.texts)
        return {"meteor": float(meteor_score(references, response, stemmer=self._stemmer, wordnet=self._wordnet))}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, stages, tokenizer, and the versions of WordNet and nltk."""
        return {
            "method": self.name,
            "stages": "exact,stem,synonyms" if self.synonyms else "exact,stem",
            "words": "wordpunct",
            "wordnet": self._wordnet.get_version(),
            "nltk": metadata.version("nltk"),
        }


def _wordnet() -> Any:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        raise MissingPrerequisite(
            "meteor: nltk's WordNet is not on this machine. Run `python -m nltk.downloader wordnet`, "
            "or pass synonyms=False, which compares equal words and stems only and needs no data."
        ) from None
    return wordnet


def _sacrebleu_signature(metric: BLEU | CHRF) -> str:
    # sacrebleu writes "var": the number of references differs between examples.
    metric.num_refs = -1
    # A bar ends a field of our own signature.
    return str(metric.get_signature().format()).replace("|", ",")
