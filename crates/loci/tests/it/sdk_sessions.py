"""Calls the official SDK's session functions and prints what they return.

Usage: sdk_sessions.py CALLS, where CALLS is a JSON list of [function, keyword arguments].
Prints a JSON list of results; the Rust test beside this file compares them.
"""
import dataclasses
import json
import sys

import claude_agent_sdk


def plain(value):
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


results = [plain(getattr(claude_agent_sdk, name)(**arguments)) for name, arguments in json.loads(sys.argv[1])]
print(json.dumps(results))
