"""Labels that people gave responses and conversations, read as they come and set beside what evaluators say."""
