"""What the script of a client prints, as its last line: what came of its call, and what the client warned of on the way."""

import json
import logging


class _Kept(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


_warnings = _Kept()
logging.getLogger().addHandler(_warnings)


def tell(result):
    """Prints the result, which JSON must be able to say."""
    print(json.dumps({"result": result, "warnings": _warnings.messages}))
