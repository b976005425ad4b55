"""Scoring of files of any length: block by block in constant memory, whole or in shards."""
