"""A page to try proxy indicators on one response: `python app.py`, or push this folder to the Hub as a Space.

The page shows a single indicator, whether a response is acceptable English, from the classifier that the environment variable
DIALEVAL_COLA names, a folder or a repository of the Hub.
"""

import os

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    model = os.environ.get("DIALEVAL_COLA")
    response_page(
        "glue_proxy",
        title="Proxy indicators",
        description="Probability that a response is acceptable English, from a classifier trained on CoLA, from 0 to 1.",
        variant="cola",
        models={"cola": model} if model else None,
    ).launch()
