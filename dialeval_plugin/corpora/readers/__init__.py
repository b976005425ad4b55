"""Readers of published layouts; each gives `Example` or `Dialogue` objects.

A malformed file returns nothing: an `InputError` names the file, the line and the field. A missing file of the corpus' own
folder is a `MissingPrerequisite`, which says what to type.
"""
