"""Data sets, scores of a document and corpus metrics, which the task files under `tasks/` name; a module a kind of task."""
