"""Similarity of a response to its references by embeddings of words (Liu et al. 2016) or of whole sentences."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, ClassVar, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from nltk.tokenize import wordpunct_tokenize

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import checked_init
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue, content_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.encoders import load_encoder
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, Precision, RuntimeChoice
from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

from .references import Compared, OneByOneScorer, ReferenceScorer, too_long

VectorArray: TypeAlias = npt.NDArray[np.float64]
EmbeddingMethod: TypeAlias = Literal["average", "extrema", "greedy"]
Similarity: TypeAlias = Callable[[VectorArray, VectorArray], float]


def average_similarity(one: VectorArray, other: VectorArray) -> float:
    """Return the cosine of the mean vectors of two texts, each of shape (words, dimensions), in [-1, 1]."""
    return _cosine(one.mean(axis=0), other.mean(axis=0))


def extrema_similarity(one: VectorArray, other: VectorArray) -> float:
    """Return the cosine of the extreme vectors of two texts, in [-1, 1]: in each dimension the value farthest from 0."""
    return _cosine(_extreme(one), _extreme(other))


def greedy_similarity(one: VectorArray, other: VectorArray) -> float:
    """Return the mean over words of the best cosine with a word of the other text, averaged over both directions: [-1, 1]."""
    cosines = _unit(one) @ _unit(other).T
    return float((cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2)


METHODS: Mapping[EmbeddingMethod, Similarity] = MappingProxyType(
    {"average": average_similarity, "extrema": extrema_similarity, "greedy": greedy_similarity}
)


class EncoderVectors:
    """The input embeddings of an encoder for a text's tokens; special tokens in a text are text. Signatures name `source`."""

    def __init__(self, name: str, *, revision: str | None = None) -> None:
        folder = resolve(name, revision=revision)
        encoder = load_encoder(str(folder), device="cpu")
        self._tokenizer = encoder.tokenizer
        weights = encoder[0].auto_model.get_input_embeddings().weight
        self._matrix = weights.detach().numpy().astype(np.float64)
        self.source = f"encoder {content_hash(folder)}"

    def of(self, text: str) -> VectorArray:
        """Return the vectors of a text's tokens, of shape (tokens, dimensions)."""
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
        rows: VectorArray = self._matrix[ids]
        return rows


class FileVectors:
    """Vectors in a text file, also as .gz: per line a word and its numbers (GloVe), with or without word2vec's first line.

    Texts are lower-cased and split by nltk's `wordpunct_tokenize`. The first line of a word counts.
    """

    def __init__(self, path: Path) -> None:
        self._places: dict[str, int] = {}
        rows: list[npt.NDArray[np.float32]] = []
        digest = hashlib.sha256()
        for word, numbers in _read(path, digest):
            if self._places.setdefault(word, len(rows)) == len(rows):
                rows.append(numbers)
        self._matrix = np.stack(rows)
        self.source = f"file {digest.hexdigest()[:16]}"

    def of(self, text: str) -> VectorArray:
        """Return the vectors of a text's words, of shape (words, dimensions), without words that have none."""
        words = wordpunct_tokenize(text.lower())
        return self._matrix[[self._places[word] for word in words if word in self._places]].astype(np.float64)


def _read(path: Path, digest: hashlib._Hash) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    dimensions = 0
    try:
        with cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                digest.update(line)
                # A word may contain blanks (as some do in GloVe), its numbers do not.
                cells = line.decode("utf-8").rstrip().rsplit(" ", dimensions or -1)
                if number == 1 and len(cells) == 2:
                    continue
                dimensions = dimensions or len(cells) - 1
                yield cells[0], _numbers(cells[1:], dimensions, f"{path}:{number}")
    except UnicodeDecodeError:
        raise InputError(f"{path}:{number}: is not UTF-8. Give vectors in text form, not word2vec's binary one.") from None
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Give a text file with a word and its numbers a line.") from error
    if not dimensions:
        raise InputError(f"{path}: is empty, expected a word and its numbers a line.")


def _numbers(cells: Sequence[str], dimensions: int, where: str) -> npt.NDArray[np.float32]:
    try:
        numbers = np.array(cells, dtype=np.float32)
    except ValueError:
        numbers = np.empty(0, dtype=np.float32)
    if len(numbers) != dimensions or not dimensions or not np.isfinite(numbers).all():
        raise InputError(f"{where}: expected a word and {dimensions or 'its'} numbers, separated by single blanks.")
    return numbers


class EmbeddingOverlap(OneByOneScorer):
    """Embedding average, vector extrema and greedy matching (Liu et al. 2016), in [-1, 1]; the best reference counts.

    Columns: `method`, then the others. Words without a vector do not count. There is no score if the response or all
    references have no other words (`empty_input`), or if a text has more than `LONGEST_COMPARED` words, or tokens of an
    encoder (`context_too_long`).

    Args:
        method: method whose value is the score; the values of the others are columns.
        vectors: text file of word vectors, on each line a word and its numbers, also as .gz.
        encoder: encoder whose input embeddings are used if there is no file; by default the packaged one.

    Raises:
        InputError: an option is unknown, both sources are given, or the file is malformed.
        ModelLoadError: the encoder is damaged or unsafe.
        MissingPrerequisite: there is no such encoder.
    """

    name: ClassVar[str] = "embedding_overlap"
    needs = ("references", "encoder")
    citation: ClassVar[str] = bibtex("liu2016how")
    range = (-1.0, 1.0)

    @checked_init
    def __init__(
        self,
        method: EmbeddingMethod = "greedy",
        *,
        vectors: str | None = None,
        encoder: str | None = None,
        revision: str | None = None,
    ) -> None:
        if vectors is not None and encoder is not None:
            raise InputError("embedding_overlap: both vectors and encoder are given. Leave one of them out.")
        self.method = method
        self.set_measures(*dict.fromkeys((method, *METHODS)))
        self._vectors: EncoderVectors | FileVectors = (
            EncoderVectors(encoder or PACKAGED_ENCODER, revision=revision) if vectors is None else FileVectors(Path(vectors))
        )

    def compare_one(self, compared: Compared) -> Row:
        """Compare a response with each of its references."""
        # Checked first, because the vectors of a very long text take much memory.
        response_words, *words = map(str.split, compared.texts)
        if refused := too_long(response_words, words):
            return refused
        response, *others = map(self._vectors.of, compared.texts)
        if refused := too_long(response, others):
            return refused
        references = [vectors for vectors in others if len(vectors)]
        for n_found, what in ((len(response), "the response"), (len(references), "the references")):
            if not n_found:
                return Unscored(Reason.EMPTY_INPUT, f"no word of {what} has a vector")
        return {name: max(METHODS[name](response, reference) for reference in references) for name in METHODS}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method and source of the vectors."""
        return {"method": self.name, "similarity": self.method, "vectors": self._vectors.source}


class SentenceSimilarity(ReferenceScorer):
    """Cosine of the sentence embeddings of response and reference, in [-1, 1]; the best reference counts.

    Texts longer than the encoder's window lose their end; `n_cut` counts them among the response and its references.

    Args:
        encoder: sentence-transformers folder or hub id; by default the packaged encoder.
        backend: runtime of the encoder; auto is the fastest installed one that is as exact as torch.
        dtype: number format of multiplications in the encoder on torch; float16 only on a GPU.

    Raises:
        ModelLoadError: the encoder is damaged or unsafe.
        MissingPrerequisite: there is no such encoder, or a package that the backend needs is not installed.
    """

    name: ClassVar[str] = "sentence_similarity"
    needs = ("references", "encoder")
    range = (-1.0, 1.0)

    @checked_init
    def __init__(
        self,
        encoder: str | None = None,
        *,
        backend: Backend = DEFAULT_BACKEND,
        dtype: Precision = "float32",
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        folder = resolve(encoder or PACKAGED_ENCODER, revision=revision)

        def load(choice: RuntimeChoice) -> TorchRuntime:
            return TorchRuntime(load_encoder(str(folder), device=choice.device), dtype=choice.dtype)

        choice = RuntimeChoice(backend, dtype, device)
        self._runtime = open_runtime(folder, choice, load=load, calibration=mini.calibration_texts)
        self._window = self._runtime.longest
        self._hash = content_hash(folder)
        self.set_measures(self.name, cut=f"a text is longer than {self._window} tokens; its end was not read")

    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Embed each distinct text once and compare."""
        texts = list(dict.fromkeys(text for one in compared for text in one.texts))
        read = dict(zip(texts, self._runtime.tokenizer.whole_ids(texts, self._window), strict=True))
        vectors = dict(zip(texts, self._runtime.embed([ids for ids, _ in read.values()]).astype(np.float64), strict=True))
        return [
            {
                "sentence_similarity": max(_cosine(vectors[one.response], vectors[reference]) for reference in one.references),
                "n_cut": float(sum(read[text][1] for text in one.texts)),
            }
            for one in compared
        ]

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, encoder, its window and its runtime."""
        own: dict[str, SignatureValue] = {"method": self.name, "encoder": self._hash, "window": self._window}
        return {**own, "truncation": "right", **self._runtime.signature_fields()}


def _extreme(vectors: VectorArray) -> VectorArray:
    highest, lowest = vectors.max(axis=0), vectors.min(axis=0)
    # The paper: "max if it is greater than |min|".
    extreme: VectorArray = np.where(highest > -lowest, highest, lowest)
    return extreme


def _unit(vectors: VectorArray) -> VectorArray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    # The cosines of a zero vector are 0.
    unit: VectorArray = vectors / np.where(lengths == 0, 1.0, lengths)
    return unit


def _cosine(one: VectorArray, other: VectorArray) -> float:
    return float(_unit(one) @ _unit(other))
