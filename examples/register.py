# SPDX-License-Identifier: GPL-2.0-only
"""A policy by a name of its own, from Python: python3 examples/register.py JOB."""

from __future__ import annotations

import sys

from lifo import Lifo

import streamsched

# Not below: a worker process that is spawned runs only what is up here.
streamsched.register_policy("lifo", Lifo)

if __name__ == "__main__":
    policies = ["lifo", "deadline"]
    result = streamsched.simulate(sys.argv[1], "wd5000aaks", policies=policies, queue_depth=1)
    for run in result.to_dict()["runs"]:
        rate, wait = run["throughput_mb_s"], run["wait_ms"]["max"]
        print(f"{run['policy']}: {rate:.1f} MB/s, longest wait {wait:.0f} ms")
