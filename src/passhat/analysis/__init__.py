"""passhat.analysis"""
