"""Conversations: their files and layouts, all read into one type of record to be scored."""
