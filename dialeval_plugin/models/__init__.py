"""Opening, reading and batching encoders and language models."""
