"""A page to try CausalScore on one response: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_CAUSALSCORE names the trained classifiers, a folder or a repository of the Hub.
"""

from dialeval_plugin.hosts.evaluate.space import response_page

if __name__ == "__main__":
    response_page(
        "causalscore",
        title="CausalScore",
        description="How strongly a response depends on the turns before it, from 0 (not at all) to 1.",
    ).launch()
