"""passhat.cli"""
