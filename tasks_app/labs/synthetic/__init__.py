"""Tasks, datasets, files and jobs that were made up, in any number, by a few statements. Their books balance."""

from tasks_app.labs.synthetic.copying_in import make_tasks
from tasks_app.labs.synthetic.made_up_plan import Size

__all__ = ["Size", "make_tasks"]
