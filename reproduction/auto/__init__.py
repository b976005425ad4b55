"""Training data of `auto`, which tells the register of a conversation, and its accuracy."""
