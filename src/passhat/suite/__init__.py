"""passhat.suite"""
