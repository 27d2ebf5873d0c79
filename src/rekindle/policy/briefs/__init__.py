"""Schedule briefs, build their requests and pages, and update the open loops."""
