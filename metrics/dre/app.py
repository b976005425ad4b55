"""A page to try DRE on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_SLM names the small model, a folder or a repository of the Hub; DIALEVAL_LLM_ARGS the large
one, as lm-evaluation-harness writes its arguments ("pretrained=MODEL"), and DIALEVAL_LLM its kind, `hf` where it is not set.
"""

import os

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "dre",
        title="DRE",
        description="How good a response is in its dialogue context, from 0 (bad) to 10 (good, and both models say so).",
        llm=os.environ.get("DIALEVAL_LLM", "hf"),
        llm_args=os.environ["DIALEVAL_LLM_ARGS"],
    ).launch()
