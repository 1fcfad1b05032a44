#!/usr/bin/python3
"""What underwatt.step() costs over an empty call, in ns: the least of many short runs.

    PYTHONPATH=python UNDERWATT_LIBRARY=build/src/lib/libunderwatt.so tests/python/step-cost.py [PAGE]
"""
import os
import sys
import timeit

if len(sys.argv) > 1:
    os.environ["UNDERWATT_PROGRESS"] = sys.argv[1]
else:
    os.environ.pop("UNDERWATT_PROGRESS", None)

import underwatt  # noqa: E402


def empty():
    pass


def least_ns(call, runs=400, calls=5000):
    return min(timeit.repeat(call, number=calls, repeat=runs)) / calls * 1e9


underwatt.step()
print(f"{least_ns(underwatt.step) - least_ns(empty):.0f}")
