"""The evaluator of social conversation or that of assistants' answers, whichever a conversation's opening asks for."""
