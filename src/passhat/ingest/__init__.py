"""passhat.ingest"""
