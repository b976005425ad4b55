"""What `auto` learns the register of a conversation from, and how often it is right."""
