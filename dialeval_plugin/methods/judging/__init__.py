"""Large language models as judges: prompts, reading of answers, ratings."""
