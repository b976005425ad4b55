"""A page to try SLIDE on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_SLM names the small model, a folder or a repository of the Hub.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "slide",
        title="SLIDE",
        description="How well a response fits its dialogue context, from 0 (does not) to 2 (does).",
        variant="slm",
    ).launch()
