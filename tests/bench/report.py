"""The table, the bars and the remarks under it."""
import math

BAR = 0.5  # vial's overhead over plain python3, as a part of bubblewrap's
WARM_BARS = {"armed": (0.03, 0.048), "on-demand": (0.22, 0.352),  # p50, plain python3 = 1:
             "step": (0.015, 0.03),                               # back to back, after idle gaps
             "reset": (0.06, math.inf)}
DATA_BAR = 2.0    # numpy and pandas loaded, the same without them = 1
CALLBACK_BAR = 2.0
RATE_BARS = {"plain": 4.0, "fork": 0.6}  # armed, runs/s at 8 at once, as many times that row's
# Rows that start a Python: what they cost over a plain one can be said.
COLD = ("bare", "bwrap", "crun", "crun-cgroup", "docker-run", "docker-exec", "vial", "vial-nocgroup")
SERIES = (("back_to_back", "back to back"), ("idle", "after idle gaps"))
COLUMNS = [  # width, title, group
    (31, "", ""),
    (6, "p50", "back to back, ms"), (6, "p99", ""), (5, "x", ""), (6, "over", ""), (5, "/bw", ""),
    (8, "p50", "after 250 ms idle, ms"), (6, "p99", ""), (5, "x", ""), (6, "over", ""),
    (5, "/bw", ""),
    (7, "1", "runs/s at once"), (5, "2", ""), (5, "8", ""),
]


def heading(facts):
    lines = [f"{facts['date']}, Linux {facts['kernel']}, {facts['cpus']} x {facts['cpu']}, "
             f"{'root' if facts['root'] else 'ordinary user'}, load {facts['load']:.2f}"]
    if facts["load"] > 0.2 * facts["cpus"]:
        lines.append(f"warning: the machine is not quiet (load {facts['load']:.2f}): "
                     "do not quote these figures")
    return "\n".join(lines) + "\n"


def overhead(figures, key, series):
    """Milliseconds over plain python3 at p50; NaN when a row is not there."""
    if key not in figures or "plain" not in figures:
        return math.nan
    return figures[key][series]["p50"] - figures["plain"][series]["p50"]


def share(figures, key, series):
    """Overhead as a part of bubblewrap's."""
    whole = overhead(figures, "bwrap", series)
    return overhead(figures, key, series) / whole if whole > 0 else math.nan


def ratio(figures, key, series):
    if "plain" not in figures:
        return math.nan
    return figures[key][series]["p50"] / figures["plain"][series]["p50"]


def number(value, digits):
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def cells(figures, key):
    row = figures[key]
    out = [row["title"]]
    isolated = key != "bare"
    digits = 2 if row["back_to_back"]["p50"] < 10 else 1
    for series, _ in SERIES:
        out += [number(row[series]["p50"], digits), number(row[series]["p99"], digits),
                number(ratio(figures, key, series), 3 if digits == 2 else 2)]
        out += [number(overhead(figures, key, series), 1) if key in COLD else "",
                number(share(figures, key, series), 2) if key in COLD and isolated else ""]
    return out + [number(rate, 0) for rate in row["runs_per_second"].values()]


def cgroup_cells(figures):
    """What the cgroup adds to vial, as a row of its own."""
    out = ["  the cgroup's part of it"]
    for series, _ in SERIES:
        added = figures["vial"][series]["p50"] - figures["vial-nocgroup"][series]["p50"]
        out += [number(added, 1), "", "", "", ""]
    return out + ["", "", ""]


def align(values):
    first, *rest = values
    line = first.ljust(COLUMNS[0][0])
    for (width, *_), value in zip(COLUMNS[1:], rest):
        line += value.rjust(width + 1)
    return line.rstrip()


def table(figures):
    groups, position = "", 0
    for width, _, group in COLUMNS:
        if group:
            groups = groups.ljust(position + 3) + group
        position += width + (position > 0)
    lines = [groups, align([title for _, title, _ in COLUMNS])]
    lines += [align(cells(figures, key)) for key in figures]
    if "vial" in figures and "vial-nocgroup" in figures:
        lines.append(align(cgroup_cells(figures)))
    return "\n".join(lines)


def bars(figures):
    """Each bar with what was found: a dictionary per line."""
    found = []
    for key, what in (("vial", "all layers, seccomp and cgroup too"),
                      ("vial-nocgroup", "without the cgroup, as bubblewrap")):
        for series, title in SERIES:
            value = share(figures, key, series)
            if not math.isnan(value):
                found.append({"row": key, "series": series, "value": round(value, 3), "bar": BAR,
                              "met": value <= BAR,
                              "text": f"overhead {title}, {what}: {value:.2f} of bubblewrap's, "
                                      f"bar {BAR:.2f}"})
    return found + warm_bars(figures)


def bar(key, value, limit, text, at_most=True):
    return {"row": key, "value": round(value, 4), "bar": limit,
            "met": value <= limit if at_most else value >= limit,
            "text": f"{text}: {value:.3f}, bar {'at most' if at_most else 'at least'} {limit:g}"}


def warm_bars(figures):
    found = []
    for key, limits in WARM_BARS.items():
        if key in figures and "plain" in figures:
            for (series, title), limit in zip(SERIES, limits):
                if limit == math.inf:
                    continue
                found.append(bar(key, ratio(figures, key, series), limit,
                                 f"{figures[key]['title']}, {title}, plain python3 = 1"))
    if "data" in figures and "armed" in figures:
        times = figures["data"]["back_to_back"]["p50"] / figures["armed"]["back_to_back"]["p50"]
        found.append(bar("data", times, DATA_BAR, "numpy and pandas loaded, without them = 1"))
    if "callback" in figures and "step" in figures:
        times = figures["callback"]["back_to_back"]["p50"] / figures["step"]["back_to_back"]["p50"]
        found.append(bar("callback", times, CALLBACK_BAR, "a step with a callback, without = 1"))
    for key, limit in RATE_BARS.items():
        if "armed" in figures and key in figures:
            times = figures["armed"]["runs_per_second"][8] / figures[key]["runs_per_second"][8]
            found.append(bar("armed", times, limit, f"armed, runs/s at 8 at once, "
                             f"{figures[key]['title']} = 1", at_most=False))
    return found


def remarks(figures, left_out, found):
    lines = ["", "x: times plain python3; over: ms over it at p50; /bw: that, as part of bubblewrap's"]
    counts = {(row["back_to_back"]["n"], row["idle"]["n"]) for row in figures.values()}
    lines += [f"n = {many} back to back, {few} after idle gaps" for many, few in sorted(counts)]
    lines += [f"left out: {reason}" for reason in left_out]
    lines += [f"failed: {row['title']}: {row['failed']} runs" for row in figures.values()
              if row["failed"]]
    lines += [f"{'met' if bar['met'] else 'NOT MET'}: {bar['text']}" for bar in found]
    return "\n".join(lines)
