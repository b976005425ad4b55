"""The scorer that chooses between the evaluators of social conversation and of assistants' answers, by a dialogue's opening."""
