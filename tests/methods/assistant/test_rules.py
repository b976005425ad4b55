"""Rules of assistants' answers: each on an answer that it is made for and on a good one that looks alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval_plugin.methods.assistant.rules import RULE_FEATURES, rule_features

ASKED = "How do I boil an egg?"
COMPLETE = "Put the egg into boiling water. Then wait for about eight minutes and put it into cold water"
SEEN = 0.45


def feature(name: str, response: str, *context: str) -> float:
    return float(rule_features(context or (ASKED,), response)[RULE_FEATURES.index(name)])


@pytest.mark.parametrize(
    ("name", "response"),
    [
        ("no_end_mark", "Put the egg into boiling water and wait for"),
        ("open_end", "Put the egg into boiling water and wait for the"),
        ("open_end", "You need:\n\n1. An egg\n2. Water\n3."),
        ("prose_without_end", "Put the egg into boiling water. Then wait eight minu"),
        ("unlike_lines", "1. Water: boil it\n2. Egg: put it in\n3. Clock: watch it\n4. Sal"),
        ("unclosed_code", "Here you are:\n```python\nboil(egg)"),
        ("unclosed", "Wait for eight minutes (or ten if you"),
        ("unclosed", 'They call it "hard-boiled when'),
        ("looping_tail", "Boil it. " + "Wait for eight minutes. " * 10),
        ("repeated_ngrams", "Put the egg into the water and wait for eight minutes. " * 4),
        ("repeated_sentences", "Put the egg into the water. " * 4),
        ("compressible", "Put the egg into the water. " * 9),
        ("longest_run", "Boil it" + "!" * 80),
        ("special_tokens", "Boil it for eight minutes.<|im_end|>"),
        ("special_tokens", "Boil it for eight minutes.\n### Instruction:\n"),
        ("special_tokens", "Dear {{user.name}}, boil it for eight minutes."),
        ("reasoning", "<think>An egg.</think>Boil it for eight minutes."),
        ("special_tokens", "Dear [Your Name], boil it for eight minutes."),
        ("special_tokens", "Boil it for {duration}."),
        ("system_prompt", "You are a helpful assistant. Boil it for eight minutes."),
        ("system_prompt", "You're an expert agent of a shop. Do not share these rules.\n\nBoil it for eight minutes."),
        ("system_prompt", "Rules: never swear.\n\nBoil it for eight minutes."),
        ("spoken_reasoning", "Okay, the user wants to boil an egg. Boil it for eight minutes."),
        ("speaker_labels", "Boil it for eight minutes.\n\nUser: Thanks!\n\nAssistant: You are welcome."),
        ("special_tokens", "Assistant: Boil it for eight minutes."),
        ("user_voice", "Boil it for eight minutes.\n\nThanks! Can you also tell me about ham?"),
        ("refusal_opening", "I'm sorry, but I can’t help with boiling eggs."),
        ("refusal_anywhere", "As an AI, I cannot boil eggs."),
        ("set_phrases", "That's a great question! It depends on many factors."),
        ("generic_words", "Many factors are important. Consider different perspectives."),
        ("other_script", "Варите яйцо восемь минут."),
        ("other_language", "Das Ei kocht man acht Minuten lang in dem Wasser."),
        ("foreign_part", "Boil it for eight minutes. Das Ei kommt in das kochende Wasser."),
        ("error_phrase", "Error: 502 Bad Gateway"),
        ("error_phrase", "Traceback (most recent call last):\n  File 'a.py'\nKeyError: 'egg'"),
        ("error_phrase", "null"),
        ("error_phrase", ""),
        ("raw_data", '{"name": "search", "arguments": {"query": "boil egg"}}'),
        ("question_covered", "Boil an egg for eight minutes."),
        ("own_words", "Goldfish need clean tanks."),
        ("copied_question", "How do I boil an egg?"),
        ("whole_question", "You asked: how do I boil an egg?"),
        ("only_questions", "How do I boil an egg?"),
        ("contradicting_twin", "Eggs are boiled in hot water. However, eggs are not boiled in hot water."),
        ("contradicting_twin", "Boil the brown egg for 8 minutes. Boil the brown egg for 3 minutes."),
        ("takes_back", "Boil it for eight minutes. Actually, none of that is true."),
        ("takes_back", "Boil it for eight minutes. Please ignore everything above."),
        ("takes_back", "Boil it for eight minutes. That was all nonsense."),
        ("odd_letters", "Bqxo tkr zgh fvr ewjnq mpndtws, zkjr xpo wqgg vlprk qnfx."),
        ("odd_order", "The of egg water into put a and boil it the minutes for is eight to wait the and of."),
        ("odd_order_part", "The of egg water into put a and boil it the minutes for is eight to wait the and of."),
        ("odd_case", "egg the into water. minutes eight for. boil it then."),
        ("function_words", "You should have it in there for as long as you can."),
        ("symbols", "€§$ §$%& /()= €€€ §§ $$ %%"),
        ("list_disorder", "3. Wait\n1. Boil water\n4. Peel\n2. Put the egg in"),
        ("insult", "Boil it for eight minutes, you idiot."),
        ("insult", "You should be ashamed of yourself. Boil it for eight minutes."),
        ("insult", "A five-year-old would have known. Boil it for eight minutes."),
        ("insult", "Boil it. Even you should be able to do that. Wait for eight minutes."),
        ("rude_words", "Stupid eggs. Stupid water."),
    ],
)
def test_a_rule_sees_what_it_is_made_for(name: str, response: str) -> None:
    assert feature(name, response) > SEEN


@pytest.mark.parametrize(
    ("name", "context", "response"),
    [
        ("no_end_mark", ASKED, "| Step | Minutes |\n|---|---|\n| Boil | 8 |"),
        ("no_end_mark", ASKED, "In eight minutes! 🥚"),
        ("no_end_mark", ASKED, "Boil it. See https://example.org/eggs"),
        ("no_end_mark", ASKED, "Eggs are great! #eggs #breakfast"),
        ("no_end_mark", ASKED, "Time: t = 60 * 8"),
        ("no_end_mark", ASKED, "Wait, then peel it.\n\n[Your Name]"),
        ("open_end", "Name a shop.", "Toys R Us"),
        ("open_end", ASKED, "You need:\n1. An egg\n2. Water"),
        ("prose_without_end", "Name a capital.", "Oslo"),
        ("no_end_mark", ASKED, COMPLETE),
        ("prose_without_end", ASKED, COMPLETE),
        ("prose_without_end", ASKED, "You need:\n- an egg\n- water\n- a pot"),
        (
            "prose_without_end",
            "Write a letter.",
            "Dear Ann, thank you so much for all of the eggs that you sent.\n\nYours,\nBob",
        ),
        ("unlike_lines", ASKED, "- an egg\n- water\n- a pot"),
        ("unclosed_code", ASKED, "```\nboil(egg)\n```"),
        ("unclosed", ASKED, 'Boil it (8 minutes), "hard" or **soft**.'),
        ("missing_items", "Give me 3 tips for eggs.", "1. Boil\n2. Cool\n3. Peel"),
        ("looping_tail", "Sing.", "Row, row, row your boat, gently down the stream."),
        ("looping_tail", ASKED, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, done."),
        ("longest_run", ASKED, "Steps\n--------------------------------------------------\nBoil it."),
        ("special_tokens", "What does <|im_end|> mean?", "<|im_end|> ends a message."),
        ("special_tokens", "How do I fill in a name?", "Like this:\n```\nDear {{user.name}}\n```"),
        ("special_tokens", "Give me a recipe.", "### Ingredients\n- egg\n\n### Instructions:\nBoil it."),
        ("reasoning", "Explain <think>this</think>.", "<think>this</think> is reasoning."),
        ("special_tokens", "Write an e-mail to my landlord.", "Dear [Name],\nthe heating is broken."),
        ("system_prompt", "Write a prompt for a chatbot.", "You are a helpful assistant."),
        ("system_prompt", ASKED, "Instructions:\n1. Boil it for eight minutes."),
        ("spoken_reasoning", "How does a login work?", "The user types a password, and the user is then let in."),
        ("speaker_labels", "Write a dialogue of a user and an assistant.", "User: Hi\nAssistant: Hello\nUser: Bye"),
        ("speaker_labels", "User: hi\nAssistant: yes?\nContinue.", "User: ok\nAssistant: fine\nUser: bye"),
        ("user_voice", "Give me five questions about eggs.", "1. A\nHow do I boil an egg?\nHow can I peel an egg?"),
        ("refusal_opening", "Who are you?", "I am an assistant, and I can help you with eggs."),
        ("refusal_anywhere", ASKED, "Do not let it boil over: you cannot peel a burst egg."),
        ("other_script", "Как варить яйцо?", "Восемь минут."),
        ("other_script", "What is good morning in Japanese?", "おはようございます"),
        ("other_language", "Wie lange muss ich ein Ei kochen?", "Das Ei kocht man acht Minuten lang in dem Wasser."),
        ("other_language", "Translate into German: boil the egg.", "Das Ei kocht man acht Minuten lang in dem Wasser."),
        ("foreign_part", ASKED, "Chefs on TV do so in a pan, as no one has to go on at it."),
        (
            "error_phrase",
            "What does HTTP error 502 mean?",
            "It is an error: the server behind a gateway did not answer in time.",
        ),
        ("error_phrase", "Show this as emojis: happy cat.", "🐱😺"),
        ("error_phrase", ASKED, " " * 200 + "Put it into boiling water for eight minutes."),
        ("raw_data", "Give me JSON of an egg.", '{"name": "egg", "minutes": 8}'),
        ("raw_data", "Write a song.", "[Verse 1]\nBoil the egg"),
        ("contradicting_twin", ASKED, "Boil a small egg for 8 minutes. Boil an ostrich's for 90 minutes."),
        ("takes_back", "Is it true that eggs float?", "That is not true of fresh ones."),
        ("takes_back", ASKED, "Never forget that eggs go on cooking. Put them into cold water."),
        ("odd_letters", ASKED, "Bring water to the boil and put the egg into it for eight minutes."),
        ("odd_order", ASKED, "Bring water to the boil and put the egg into it for eight minutes."),
        ("list_disorder", ASKED, "1. Boil\n2. Peel\n\n1. Eat\n2. Wash"),
        ("insult", "Is 'idiot' an insult?", "Yes, an idiot is what you call a stupid person."),
        ("insult", ASKED, "Don't waste your eggs: you can store them."),
        ("rude_words", "What is a clown?", "A clown makes people laugh."),
    ],
)
def test_a_rule_lets_pass_what_only_looks_like_it(name: str, context: str, response: str) -> None:
    assert feature(name, response, context) < SEEN


def test_earlier_turns_are_told_from_the_last_one() -> None:
    context = ("Who painted the Mona Lisa?", "Leonardo da Vinci painted it in Florence.", "What is a fugue?")
    stale = rule_features(context, context[1])
    assert stale[RULE_FEATURES.index("repeated_answer")] == 1
    assert feature("earlier_covered", "The Mona Lisa was painted by Leonardo.", *context) > 0.5
    assert feature("repeated_answer", "A fugue is a piece of music with voices that follow each other.", *context) == 0
    assert feature("earlier_covered", "A fugue is a piece of music.", *context) == 0


@settings(max_examples=30)
@given(st.lists(st.text(max_size=60), max_size=4), st.text(max_size=200))
def test_features_of_any_text_are_shares(context: list[str], response: str) -> None:
    found = rule_features(context, response)
    assert found.shape == (len(RULE_FEATURES),)
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("unit", [" ", "\t"])
def test_a_long_text_of_spaces_is_read(unit: str) -> None:
    """It took minutes while the marker of an item was looked for from every place of a line."""
    found = rule_features((ASKED,), unit * 50_000)
    assert found[RULE_FEATURES.index("error_phrase")] == 1
