"""Parts of the tests of layouts: a conversation about tea, and how it is compared with what was read."""

from hypothesis import strategies as st

from dialeval_plugin.conversations.reading import conversations_from
from dialeval_plugin.conversations.record import Conversation, ReadingOptions

FIRST, SAID = "Do you like tea?", "I do, green tea most of all."
MORE, LATER = "How do you brew it?", "Two minutes in water that is not quite boiling."
TEA = [("user", FIRST), ("assistant", SAID), ("user", MORE), ("assistant", LATER)]
ASKED, ANSWER = {"role": "user", "content": FIRST}, {"role": "assistant", "content": SAID}
TEXTS = (
    st.text(
        st.characters(exclude_categories=["C", "Z"], exclude_characters="<[◁", include_characters=" "), min_size=1, max_size=20
    )
    .map(str.strip)
    .filter(lambda text: text and not text.startswith("analysis"))
)
"""Texts that people say, without marks of reasoning, which are no speech."""
CHAT = [{"role": role, "content": text} for role, text in TEA]


def read_back(rows, **options):
    """Return the turns of each conversation, and the places of those that are scored; a response has the last place."""
    found = []
    for one in conversations_from(rows, ReadingOptions(**options)):
        if isinstance(one, Conversation):
            found.append(([(turn.speaker, turn.text) for turn in one.turns], list(one.responses())))
        else:
            turns = [(turn.speaker, turn.text) for turn in (*one.context, one.response)]
            found.append((turns, [len(turns) - 1]))
    return found
