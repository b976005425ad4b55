"""Conversations as people have them, made into what is scored: one record, whatever wrote the file."""
