"""A page to try the general evaluator on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_GENERAL names the trained model, a folder or a repository of the Hub.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "general",
        title="General dialogue evaluator",
        description="How good a response looks to a model trained on real dialogues: a probability, higher is better.",
    ).launch()
