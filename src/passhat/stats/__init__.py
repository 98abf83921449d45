"""passhat.stats"""
