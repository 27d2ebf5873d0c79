"""Ask the operator, stop agents on request, and read the rows that screens show."""
