"""A page to try the general evaluator on a conversation: `python app.py`, or push this folder to the Hub as a Space.

The environment variable DIALEVAL_GENERAL names a trained model, a folder or a repository of the Hub; else the bundled one.
"""

from dialeval_plugin.hosts.evaluate.conversation_page import conversation_page

if __name__ == "__main__":
    conversation_page().launch()
