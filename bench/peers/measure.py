# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds of short processes, and what is made of their times.

One process at a time: a peer whose threads spin between runs would otherwise take the other's CPU.
Each round runs every side once, one after the other, so that a machine that slows down slows all.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

TIMEOUT_S = 900


class Failure(Exception):
    """One side could not be measured; the text says why."""


def call(command, env=None):
    """Runs a command and returns what it prints; Failure names it and its last words."""
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(
            [str(c) for c in command],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise Failure(f"{name}: no answer in {TIMEOUT_S} s") from e
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failure(last if last.startswith(name) else f"{name}: {last}")
    return done.stdout


def call_json(command, env=None):
    return json.loads(call(command, env))


@dataclass(frozen=True)
class Pace:
    """How long to look: rounds, seconds of timed runs in each, and the fewest of them."""

    rounds: int
    seconds: float
    fewest: int

    def counts(self, ms):
        """Runs before the clock and runs on it, for a side that takes `ms` a run."""
        iters = max(self.fewest, min(50000, int(self.seconds * 1e3 / max(ms, 1e-6))))
        return max(1, iters // 5), iters


class Progress:
    """One line on a terminal: what is being done and how long the rest takes."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.shown = sys.stderr.isatty()

    def show(self, what, k=None):
        if not self.shown:
            return
        if k is not None:
            what += f", round {k + 1}"
        left = ""
        if self.done:
            s = (time.monotonic() - self.start) / self.done * (self.total - self.done)
            left = f", {s / 60:.0f} min left" if s >= 90 else f", {s:.0f} s left"
        sys.stderr.write(f"\r\033[K[{self.done + 1}/{self.total}] {what}{left}")
        sys.stderr.flush()

    def step(self, n=1):
        self.done += n

    def clear(self):
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def interleave(sides, pace, tick):
    """Runs A B C, A B C, ...  `sides` maps a name to a function of (warmup, iters) that returns a
    dict with median_ms, min_ms and rss_peak_bytes; `tick` is told of each round.  Returns the
    dicts by side, one for each round."""
    counts = {}
    for name, side in sides.items():
        counts[name] = pace.counts(side(1, 3)["min_ms"])
    rounds = {name: [] for name in sides}
    for k in range(pace.rounds):
        tick(k)
        for name, side in sides.items():
            rounds[name].append(side(*counts[name]))
    return rounds


def summary(rounds):
    """Of one side."""
    return {
        "median_ms": statistics.median(r["median_ms"] for r in rounds),
        "best_ms": min(r["min_ms"] for r in rounds),
        "rss_peak_bytes": max(r["rss_peak_bytes"] for r in rounds),
        "rounds": rounds,
    }


def compare(ours, theirs):
    """How many times as fast we are: in each round, by the median over the rounds, and by the best
    single run of either side, which other work on the machine disturbs least."""
    ratios = [t["median_ms"] / o["median_ms"] for o, t in zip(ours["rounds"], theirs["rounds"])]
    return {
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "ratio_best": theirs["best_ms"] / ours["best_ms"],
        "ratios": ratios,
        "memory_ratio": ours["rss_peak_bytes"] / theirs["rss_peak_bytes"],
    }


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))
