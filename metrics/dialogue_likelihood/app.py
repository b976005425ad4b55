"""A page to try dialogue likelihood on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_LANGUAGE_MODEL names the language model, a folder or a repository of the Hub.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "dialogue_likelihood",
        title="Dialogue likelihood",
        description="The mean probability, from 0 to 1, of a response's tokens after its context.",
        level="turn",
    ).launch()
