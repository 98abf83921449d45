"""passhat.records"""
