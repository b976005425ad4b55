"""A page to try DBDC's metrics on a few turns: `python app.py`, or push this folder to the Hub as a Space."""

from dialeval_plugin.hosts.evaluate.space import breakdown_page

if __name__ == "__main__":
    breakdown_page().launch()
