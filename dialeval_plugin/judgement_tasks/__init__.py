"""What the task files under `tasks/` name: documents, the score of one, and corpus-level metrics."""
