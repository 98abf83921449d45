"""What a system can be: a model in our loop, a command, a function, an endpoint."""
