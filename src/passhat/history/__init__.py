"""passhat.history"""
