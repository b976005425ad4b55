"""A page to try a rubric on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_RUBRIC is the question, DIALEVAL_LLM_ARGS names the large model, as lm-evaluation-harness
writes its arguments ("pretrained=MODEL"), and DIALEVAL_LLM its kind, `hf` where it is not set.
"""

import os

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "rubric",
        title="Rubric",
        description="What a large language model answers to a question about a response.",
        rubric=os.environ["DIALEVAL_RUBRIC"],
        llm=os.environ.get("DIALEVAL_LLM", "hf"),
        llm_args=os.environ["DIALEVAL_LLM_ARGS"],
    ).launch()
