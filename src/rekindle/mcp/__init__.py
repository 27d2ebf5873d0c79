"""The MCP server: agents read their notes, make proposals and ask a person."""
