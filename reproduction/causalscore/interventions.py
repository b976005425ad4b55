"""Change of a score when a cause of the response is replaced, and when another turn is.

Responses of CGDIALOG+'s test files with their marked causes. Of each cause there are three pairs at most: the context as it is
above the one in which an utterance of another dialogue stands for the cause; and the context in which that utterance stands
for the nearest turn before the cause, or after it, that is no cause, above the one in which it stands for the cause. A score
that knows causes orders all three. Who only looks at how near a turn is to the response is right about the one kind and wrong
about the other.

    python -m reproduction.causalscore.interventions --document reproduction/causalscore/results.md
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora.readers.cgdialog import CausePair, read_causes
from dialeval_plugin.methods.causalscore.data import HORIZON, OtherUtterances, pair_hash
from reproduction.contrasts.measures import ContrastPair, contrast_table, order_pairs
from reproduction.data import data_folder
from reproduction.documents import script_parser, write_tables

FILES: Mapping[str, str] = MappingProxyType(
    {name: f"cgdialog_plus/{file}_response_cause_test.json" for name, file in (("DREAM", "DREAM"), ("MSC", "msc"))}
)
FALLS, LATER, EARLIER = "cause replaced", "cause after the other turn", "cause before the other turn"


def interventions(corpus: str, path: Path) -> list[ContrastPair]:
    """Read the pairs of a file; of each context the last `HORIZON` turns."""
    found = read_causes(path)
    others = OtherUtterances(found)
    return [pair for number, response in enumerate(found) for pair in _of_response(corpus, number, response, others)]


def _of_response(corpus: str, number: int, response: CausePair, others: OtherUtterances) -> Iterator[ContrastPair]:
    texts = [turn.text for turn in response.context]
    first = max(0, len(texts) - HORIZON)
    innocent = [place for place in range(first, len(texts)) if place not in response.causes]
    for cause in response.causes:
        if cause < first:
            continue
        stranger = others.draw(pair_hash(response), random.Random(f"{corpus} {number} {cause}"))
        # None of the places of a context is -1: nothing is replaced there.
        before = max((place for place in innocent if place < cause), default=None)
        after = min((place for place in innocent if place > cause), default=None)
        for kind, other in ((FALLS, -1), (LATER, before), (EARLIER, after)):
            if other is not None:
                both = [_replaced(texts, place, stranger)[first:] for place in (other, cause)]
                id = f"{corpus} {number} {cause} {kind}"
                items = [Example.from_texts(context, response.response.text, id=id) for context in both]
                yield ContrastPair(f"{corpus} {pair_hash(response)}", f"{corpus}, {kind}", *items)


def _replaced(texts: Sequence[str], place: int, stranger: str) -> list[str]:
    return [stranger if number == place else text for number, text in enumerate(texts)]


def scorers() -> dict[str, Scorer]:
    """CausalScore and its first half by the bundled classifiers, and what judges the fit of a response in another way."""
    return {
        "causalscore": load_scorer("causalscore"),
        "unconditional": load_scorer("causalscore", variant="unconditional"),
        "general": load_scorer("general"),
        "random": load_scorer("random"),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = script_parser(__doc__).parse_args(arguments)
    pairs = [pair for corpus, file in FILES.items() for pair in interventions(corpus, data_folder() / file)]
    ordered = {name: order_pairs(scorer, pairs) for name, scorer in scorers().items()}
    write_tables(options.document, {"interventions": contrast_table(ordered)})


if __name__ == "__main__":
    main()
