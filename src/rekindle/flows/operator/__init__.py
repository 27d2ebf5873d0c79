"""Ask the operator questions, stop agents on request, and read the rows shown on screen."""
