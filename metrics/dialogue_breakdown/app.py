"""A page to try breakdown detection on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_LANGUAGE_MODEL names the language model, a folder that `dialeval train language-model` wrote.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "dialogue_breakdown",
        title="Dialogue breakdown",
        description="The probability, from 0 to 1, that a response breaks the dialogue down; lower is better.",
    ).launch()
