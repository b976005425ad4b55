"""Rules of assistants' answers: each on an answer that it is made for and on a good one that looks alike."""

from __future__ import annotations

import pytest

from dialeval_plugin.methods.assistant.rules import RULE_FEATURES, rule_features

ASKED = "How do I boil an egg?"


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
        ("system_prompt", "You are a helpful assistant. Boil it for eight minutes."),
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
        ("odd_letters", "Bqxo tkr zgh fvr ewjnq mpndtws, zkjr xpo wqgg vlprk qnfx."),
        ("odd_order", "The of egg water into put a and boil it the minutes for is eight to wait the and of."),
        ("odd_order_part", "The of egg water into put a and boil it the minutes for is eight to wait the and of."),
        ("odd_case", "egg the into water. minutes eight for. boil it then."),
        ("function_words", "You should have it in there for as long as you can."),
        ("symbols", "€§$ §$%& /()= €€€ §§ $$ %%"),
        ("list_disorder", "3. Wait\n1. Boil water\n4. Peel\n2. Put the egg in"),
        ("insult", "Boil it for eight minutes, you idiot."),
        ("rude_words", "Stupid eggs. Stupid water."),
    ],
)
def test_a_rule_sees_what_it_is_made_for(name: str, response: str) -> None:
    assert feature(name, response) > 0.45
