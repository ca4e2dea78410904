"""The worker of the web server: how requests arrive, how bodies are read, and how answers leave.

Imports `vocabulary`. Start at `web_worker.py`.
"""
