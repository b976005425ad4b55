"""Bundled trained models, each in a folder of its name, whose README.md is its card; see also docs/results.md."""
