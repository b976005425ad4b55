"""How often each model in the box orders two responses, or two dialogues, as anybody would."""
