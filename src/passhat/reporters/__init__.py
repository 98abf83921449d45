"""From an answer to text: one format a file."""
