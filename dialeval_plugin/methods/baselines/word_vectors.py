"""Where the vectors of words come from: the input embeddings of an encoder, or a text file of GloVe or word2vec."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from nltk.tokenize import wordpunct_tokenize

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.encoders import load_encoder
from dialeval_plugin.models.folders import resolve

Vectors: TypeAlias = npt.NDArray[np.float64]


class WordVectors(Protocol):
    """A source of word vectors."""

    source: str
    """What it is and a hash of it, for the signature."""

    def of(self, text: str) -> Vectors:
        """Return the vectors of a text's words, of shape (words, dimensions); no row for a word that has none."""
        ...


class EncoderVectors:
    """The input embeddings of an encoder, for the pieces that its tokenizer cuts a text into; special tokens are text."""

    def __init__(self, name: str, *, revision: str | None = None) -> None:
        folder = resolve(name, revision=revision)
        encoder = load_encoder(str(folder), device="cpu")
        self._tokenizer = encoder.tokenizer
        weights = encoder[0].auto_model.get_input_embeddings().weight
        self._matrix = weights.detach().numpy().astype(np.float64)
        self.source = f"encoder {content_hash(folder)}"

    def of(self, text: str) -> Vectors:
        """See `WordVectors.of`."""
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
        rows: Vectors = self._matrix[ids]
        return rows


class FileVectors:
    """Vectors of a text file, a word and its numbers a line (GloVe), with or without word2vec's first line; .gz is unpacked.

    Texts are lower-cased and split by nltk's `wordpunct_tokenize`. Of a word that occurs twice the first line counts.
    """

    def __init__(self, path: Path) -> None:
        self._places: dict[str, int] = {}
        rows: list[npt.NDArray[np.float32]] = []
        digest = hashlib.sha256()
        for word, numbers in _read(path, digest):
            if word not in self._places:
                self._places[word] = len(rows)
                rows.append(numbers)
        self._matrix = np.stack(rows)
        self.source = f"file {digest.hexdigest()[:16]}"

    def of(self, text: str) -> Vectors:
        """See `WordVectors.of`."""
        words = wordpunct_tokenize(text.lower())
        return self._matrix[[self._places[word] for word in words if word in self._places]].astype(np.float64)


def _read(path: Path, digest: hashlib._Hash) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    dimensions = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                digest.update(line)
                # A word may hold blanks (GloVe has some), its numbers do not.
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


def _open(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _numbers(cells: Sequence[str], dimensions: int, where: str) -> npt.NDArray[np.float32]:
    try:
        numbers = np.array(cells, dtype=np.float32)
    except ValueError:
        numbers = np.empty(0, dtype=np.float32)
    if len(numbers) != dimensions or not dimensions or not np.isfinite(numbers).all():
        raise InputError(f"{where}: expected a word and {dimensions or 'its'} numbers, separated by single blanks.")
    return numbers
