"""passhat.reporters"""
