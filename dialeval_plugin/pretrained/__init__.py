"""Bundled trained models, each in a folder of its name: its card is README.md, see also docs/results.md."""
