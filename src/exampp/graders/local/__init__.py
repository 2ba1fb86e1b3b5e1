"""Graders on this machine: models of the transformers library, through torch.

Needs the extra `hf` and transformers 5. Importing this package imports neither torch nor
transformers; `load` does. A T5 model saved with version 5 (as by `finetune`) must be loaded with
version 5, because version 4 reads its config as one with tied weights.
"""

from exampp.graders.local.finetune import finetune
from exampp.graders.local.grader import LocalGrader, load_local_grader

__all__ = ["LocalGrader", "finetune", "load_local_grader"]
