"""What every method that reads dialogues with a language model shares: opening the model, and which sequences it reads."""
