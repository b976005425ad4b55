"""The true mean of many rows that a judge scored and people labelled some of, and which rows to label next."""
