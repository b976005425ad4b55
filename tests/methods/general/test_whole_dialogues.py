"""How a whole dialogue is judged: whose turns count, and that its length moves nothing by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval_plugin.conversations.messages import judged_turns
from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.methods.general.mixing import LONGEST_STRETCH, turn_statistics


@pytest.mark.parametrize(
    ("speakers", "judged"),
    [
        (("user", "assistant", "user", "assistant"), (True, False, True)),
        (("Chatbot", "Human", "Chatbot", "Chatbot"), (False, True, True)),
        (("User", "System", "User"), (True, False)),
        (("User", "System", "model"), (False, True)),
        (("A", "B", "A"), (True, True)),
        ((None, None, None), (True, True)),
        (("assistant", "user", "user"), (True, True)),
    ],
)
def test_the_assistants_turns_are_judged_or_everybodys(speakers: tuple[str | None, ...], judged: tuple[bool, ...]) -> None:
    turns = [Turn(f"text {place}", speaker) for place, speaker in enumerate(speakers)]
    assert tuple(judged_turns(turns)) == judged
    assert tuple(judged_turns([Turn(" "), *turns])) == judged


def test_a_dialogue_that_goes_on_as_it_was_keeps_its_statistics() -> None:
    turns = np.array([0.3, -1.0, 2.0, 0.5, 1.0])
    assert len(turns) == LONGEST_STRETCH
    short, long = (turn_statistics([np.tile(turns, times)]) for times in (1, 6))
    assert {name: values[0] for name, values in short.items()} == pytest.approx({"mean": 0.56, "lowest": -1.0, "last": 1.0})
    for name, values in long.items():
        assert values == pytest.approx(short[name])


def test_stretches_are_about_equally_long() -> None:
    found = turn_statistics([np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0])])
    assert {name: values[0] for name, values in found.items()} == {"mean": 2.0, "lowest": 0.5, "last": 0.5}
