"""The resource API. Start at `urls.py`; `task_resources.py` has tasks, `*_serializers.py` their shapes."""
