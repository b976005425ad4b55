"""Data sets, scores per document and corpus metrics of the task files in `tasks/`; one module per kind of task."""
