"""A judge of tone for tests: a few words decide, so that what it says is the same every time.

It is wrong about two of the example's labels, as a model would be: it misses an apology in other
words, and does not notice a polite insult.
"""

from __future__ import annotations

import re

from tests.judges import Request, Said, completion, graded

_ANSWER = re.compile(r"<<(data-[0-9a-f]+) answer>>\n(.*?)\n<<end \1 answer>>", re.DOTALL)
_GREETING = re.compile(r"(Dear|Hello|Good (day|morning))\b")
_SORRY = re.compile(r"\b(sorry|apologi[sz]e|apologies)\b", re.IGNORECASE)
_BLAME = re.compile(r"your fault|you should have|as i already said|obviously", re.IGNORECASE)


def judged(request: Request) -> Said:
    """Answer for the three criteria of the example's rubric, in their order."""
    found = _ANSWER.search(request.work)
    assert found is not None
    answer = found[2]
    met = {
        "C1": bool(_GREETING.match(answer)) and answer.rstrip().endswith("refund desk"),
        "C2": bool(_SORRY.search(answer)),
        "C3": not _BLAME.search(answer),
    }
    return Said(200, completion(graded(met, "pass" if all(met.values()) else "fail")))
