"""Who makes a summary of turns: a model without tools, or nobody but what is known anyway."""
