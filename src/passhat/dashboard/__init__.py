"""passhat.dashboard"""
