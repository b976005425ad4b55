"""Large language models as judges: prompts, parsing of answers, ratings."""
