"""passhat.runner"""
