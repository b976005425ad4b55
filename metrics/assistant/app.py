"""A page to try the evaluator of assistants on one answer: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_ASSISTANT names a trained model, a folder or a repository of the Hub; else the bundled one.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "assistant",
        title="Evaluator of assistants",
        description="How good an assistant's answer is, from 0 to 1, and which defects it has.",
    ).launch()
