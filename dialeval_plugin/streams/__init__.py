"""Files of any length, scored block by block in constant memory, whole or by shards."""
