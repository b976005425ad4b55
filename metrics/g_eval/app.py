"""A page to try G-Eval on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_LLM_ARGS names the large model, as lm-evaluation-harness writes its arguments
("pretrained=MODEL"), and DIALEVAL_LLM its kind, `hf` where it is not set.
"""

import os

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "g_eval",
        title="G-Eval",
        description="Naturalness, coherence, engagingness and groundedness of a response, from 1 (bad) to 3 (good).",
        llm=os.environ.get("DIALEVAL_LLM", "hf"),
        llm_args=os.environ["DIALEVAL_LLM_ARGS"],
    ).launch()
