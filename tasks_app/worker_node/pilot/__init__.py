"""The program on a worker node: fetches jobs, runs their payloads, reports. Standard library and psutil, no Django."""
