"""The true mean of rows scored by a judge and partly labelled by people, and which rows to label next."""
