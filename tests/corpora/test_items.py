from __future__ import annotations

import re

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.items import context_key, mean_rating


def example(*context: str, response: str = "Yes.", id: str = "0") -> Example:
    return Example.from_texts(context, response, id=id)


def rated(**ratings: tuple[float, ...]) -> Example:
    return Example("7", (), Turn("Yes."), ratings=ratings)


def test_mean_rating_is_the_mean_of_what_is_there() -> None:
    item = rated(Overall=(1.0, 2.0, 4.0), Recovery=())
    assert mean_rating(item, "Overall") == pytest.approx(7 / 3)
    assert mean_rating(item, "Recovery") is None


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (rated(Overall=(1.0,), Fluent=()), "'7': has no quality 'overall'. It has: Overall, Fluent."),
        (rated(), "'7': has no quality 'overall'. It has: none."),
    ],
)
def test_mean_rating_of_an_unknown_quality_lists_the_known_ones(item: Example, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        mean_rating(item, "overall")


def test_context_key_ignores_response_white_space_and_speaker() -> None:
    spoken = Example("1", (Turn("  How  are\tyou? ", "User"),), Turn("Fine."))
    assert context_key(spoken) == context_key(example("How are you?", response="Bad."))


def test_context_key_is_shared_by_the_points_of_one_dialogue() -> None:
    early = example("Hi!", "Hello.", "Tea?")
    late = example("Hi!", "Hello.", "Tea?", "Yes.", "Milk?")
    whole = Dialogue("d", tuple(map(Turn, ("Hi!", "Hello.", "Tea?", "Yes.", "Milk?", "No."))))
    assert context_key(early) == context_key(late) == context_key(whole)
    assert context_key(early) != context_key(example("Hi!", "Hello.", "Coffee?"))


def test_context_key_of_short_contexts_is_the_whole_context() -> None:
    assert len({context_key(item) for item in (example("Hi!"), example("Hi!", "Hello."), example("Hi! Hello."))}) == 3


def test_items_without_a_context_are_alone() -> None:
    assert context_key(example(id="a")) != context_key(example(id="b"))
    assert context_key(example(id="a")) == context_key(example(id="a"))
