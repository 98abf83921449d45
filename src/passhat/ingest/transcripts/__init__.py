"""What was said in a trial, out of the files of those who wrote it down."""
