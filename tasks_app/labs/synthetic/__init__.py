"""Made-up tasks, datasets, files and jobs, in any number, stored by a few statements. Their books balance."""

from tasks_app.labs.synthetic.copying_in import make_tasks
from tasks_app.labs.synthetic.made_up_plan import Size

__all__ = ["Size", "make_tasks"]
