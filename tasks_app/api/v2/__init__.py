"""The resource API. Start at `urls.py`; `task_resources.py` has tasks, `serializers.py` the shapes."""
