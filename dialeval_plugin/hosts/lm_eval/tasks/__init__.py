"""What the task files under `tasks/` name: data sets, and the scores of one document."""
