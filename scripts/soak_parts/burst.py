"""Far more builds at once than a server takes. A process of its own, so that it does not slow down who is measured.

python3 -m soak_parts.burst PORT CONNECTIONS EACH    prints `begins`, then what was answered, as JSON
"""

import asyncio
import collections
import json
import sys
import time
from typing import Any

from faults_parts.runs import raise_descriptors
from faults_parts.slow import many

FILLER = "\nA line of a prompt that is built and not kept.\n" * 200


def build(text):
    return {"profile": "default", "template": text + FILLER}


def main(port, connections, each):
    raise_descriptors(connections + 200)
    print("begins", flush=True)
    answers: list[Any] = []
    begun = time.monotonic()
    asyncio.run(many(port, connections, each, answers, build))
    wrong = [
        str(status)
        for status, headers, *_ in answers
        if not (status == 200 or (status == 503 and "retry-after" in headers))
    ]
    wrong += [f"not {text}" for status, _, body, text, _ in answers if status == 200 and text.encode() not in body]
    print(
        json.dumps(
            {
                "seconds": round(time.monotonic() - begun, 2),
                "slowest": round(max(taken for *_, taken in answers), 2),
                "statuses": collections.Counter(str(status) for status, *_ in answers),
                "wrong": wrong[:5],
            }
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
