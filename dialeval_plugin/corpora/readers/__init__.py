"""Readers of published layouts; each gives `Example` or `Dialogue` objects.

Of a malformed file nothing is returned: an `InputError` names the file, the line and the field. A file of the corpus' own
folder that is not there is a `MissingPrerequisite`, which says what to type.
"""
