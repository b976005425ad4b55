"""A page to try dialogue reconstruction on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_RECONSTRUCTION names the trained model, a folder or a repository of the Hub.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "dialogue_reconstruction",
        title="Dialogue reconstruction",
        description="How much a dialogue model is surprised by a response: nats a token, from 0; lower is more normal.",
        level="turn",
    ).launch()
