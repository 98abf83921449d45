"""Three tasks of two scenarios, tested by AppWorld's own tracker and written by its own writer."""

import sys

from appworld.common.utils import write_json
from appworld.evaluator import Metric, TestTracker


def tracked(difficulty: int, answer: int) -> TestTracker:
    test = TestTracker(difficulty=difficulty)
    with test("assert the answer is 7."):
        test.case(answer, "==", 7)
    with test("assert nothing else changed."):
        test.case(True, "==", True)
    return test


metric = Metric()
for task, difficulty, answer in (("82e2fac_1", 1, 7), ("82e2fac_2", 1, 3), ("302c169_1", 3, 7)):
    metric(task, tracked(difficulty, answer))
write_json(metric.get_metrics(), sys.argv[1], silent=True)
