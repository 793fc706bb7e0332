#!/usr/bin/env python3
"""Draws docs/soak.png from target/tmp/soak.csv, which `make soak` writes. Needs matplotlib; `make soak` runs it in an environment with it."""

import csv
import pathlib
import statistics
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from PIL import Image  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Seconds over which times to a JobSet are summarized.
WINDOW = 120
PROCESSES = ("memory", "threads", "tasks", "files", "sockets")


def read():
    """Returns the values of each series by what they are of, each with its time in minutes."""
    series = defaultdict(lambda: defaultdict(list))
    with open(ROOT / "target/tmp/soak.csv", newline="") as file:
        for row in csv.DictReader(file):
            series[row["series"]][row["of"]].append((float(row["seconds"]) / 60, float(row["value"])))
    return series


def windows(creations):
    """Returns the minutes, medians, 99th percentiles and maxima of the times to a JobSet in each window."""
    by_window = defaultdict(list)
    for minute, value in (point for points in creations.values() for point in points):
        by_window[int(minute * 60 // WINDOW)].append(value)
    rows = []
    for window, values in sorted(by_window.items()):
        values.sort()
        rows.append(((window + 0.5) * WINDOW / 60, statistics.median(values), values[int((len(values) - 1) * 0.99)], values[-1]))
    return zip(*rows)


def rate(points):
    """Returns the change of a counter per second between samples that are a minute apart."""
    apart = points[::12]
    return [(end[0], (end[1] - start[1]) / (end[0] - start[0]) / 60) for start, end in zip(apart, apart[1:])]


def lines(axes, series, change=lambda points: points):
    """Draws a line for each process: dark while it leads, light while it stands by."""
    for process, points in series["shown"].items():
        leads = dict(series["leads"][process])
        drawn = change(points)
        for wanted, color in ((0.0, "lightsteelblue"), (1.0, "tab:blue")):
            values = [value if leads.get(minute, wanted) == wanted else None for minute, value in drawn]
            axes.plot([minute for minute, _ in drawn], values, color=color, linewidth=1)


def main():
    series = read()
    figure, panels = plt.subplots(9, 1, figsize=(9, 15), sharex=True, layout="constrained")
    units = {"memory": "memory, MiB"}
    for axes, name in zip(panels, PROCESSES):
        lines(axes, {"shown": series[name], "leads": series["leads"]})
        axes.set_ylabel(units.get(name, name))
    for axes, name in zip(panels[5:], ("calls", "cpu")):
        lines(axes, {"shown": series[name], "leads": series["leads"]}, rate)
        axes.set_ylabel({"calls": "API calls per s", "cpu": "CPU, cores"}[name])
    for name, color in (("watches", "tab:blue"), ("TrainJobs", "tab:orange")):
        panels[7].plot(*zip(*series[name][""]), color=color, linewidth=1, label=name)
    panels[7].set_ylabel("of both processes")
    panels[7].legend(loc="upper right")
    minutes, *times = windows(series["creation"])
    for values, label, color in zip(times, ("p50", "p99", "worst"), ("tab:blue", "tab:orange", "tab:red")):
        panels[8].plot(minutes, values, color=color, linewidth=1, label=label)
    panels[8].set_yscale("log")
    panels[8].set_ylabel("s to a JobSet")
    panels[8].legend(loc="upper right", ncols=3)
    panels[8].set_xlabel("minutes")
    for axes in panels[:8]:
        axes.set_ylim(bottom=0)
    for axes in panels:
        axes.grid(alpha=0.3)
        for kind, color in (("LeaderKilled", "tab:red"), ("StandbyKilled", "lightgray")):
            for minute, _ in series["fault"].get(kind, []):
                axes.axvline(minute, color=color, linewidth=0.5, zorder=0)
    plot = ROOT / "docs/soak.png"
    figure.savefig(plot, dpi=80)
    # Half of the size or less.
    Image.open(plot).convert("RGB").quantize(128).save(plot, optimize=True)


main()
