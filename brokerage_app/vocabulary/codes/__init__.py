"""The refusal codes of brokerage and throttling, a module for each kind.

Scripts read them: a code is never renamed or given a new meaning. Rules name them `codes.LOW_MEMORY`.
"""

from brokerage_app.vocabulary.codes.data_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.network_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.policy_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.queue_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.resource_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.software_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.state_codes import *  # noqa: F403 - one vocabulary
from brokerage_app.vocabulary.codes.throttle_codes import *  # noqa: F403 - one vocabulary
