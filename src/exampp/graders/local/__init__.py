"""Graders on this machine: models of the transformers library, through torch.

Needs the extra `hf`. Importing this package imports neither torch nor transformers; `load` does.
Needs transformers 5; a T5 model that was saved with version 5 (as by `finetune`) has to be loaded
with version 5 too, since version 4 reads such a config as one with tied weights.
"""

from exampp.graders.local.finetune import finetune
from exampp.graders.local.grader import LocalGrader, load_local_grader

__all__ = ["LocalGrader", "finetune", "load_local_grader"]
