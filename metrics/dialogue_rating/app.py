"""A page to try a language model's ratings on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_LLM_ARGS names the large model, as lm-evaluation-harness writes its arguments
("pretrained=MODEL"), and DIALEVAL_LLM its kind, `hf` where it is not set.
"""

import os

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "dialogue_rating",
        title="Dialogue rating",
        description="A language model's ratings of a response: understandable from 0 to 1, overall from 0 to 4, others 0 to 2.",
        llm=os.environ.get("DIALEVAL_LLM", "hf"),
        llm_args=os.environ["DIALEVAL_LLM_ARGS"],
        quality="overall,interesting,engaging,specific,relevant,correct,semantically_appropriate,understandable,fluent",
    ).launch()
