"""The evaluator of assistants' answers: how helpful an answer is, and which of fourteen defects it has."""
