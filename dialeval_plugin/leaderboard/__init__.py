"""The leaderboard, from result files to the page and its exports."""
