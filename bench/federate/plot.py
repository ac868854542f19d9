# Runs of `edgewise federate` as a picture: accuracy against rounds, simulated time and simulated joules.
#   plot.py FOLDER... >rounds.svg
import csv
import os
import sys

W, H, LEFT, TOP, GAP = 340, 260, 60, 46, 40
COLOURS = ["#2e6f9e", "#c2571a", "#3b8b4b", "#8a4fa3", "#a08a1c", "#5b5b5b"]
AXES = [("rounds", 1), ("simulated hours", 3600), ("simulated kJ", 1000)]


def read(folder):
    points, seconds, joules = [], 0.0, 0.0
    with open(os.path.join(folder, "rounds.csv"), newline="") as f:
        for row in csv.DictReader(f):
            seconds += float(row["sim_s"] or "nan")
            joules += float(row["sim_j"] or "nan")
            points.append((float(row["round"]), seconds, joules, float(row["accuracy"])))
    return points


def steps(most):
    """Round numbers, four to nine of them."""
    unit = 10.0 ** len(str(int(most))) if most >= 1 else 1.0
    while unit > most / 4:
        for part in (2, 5, 10):
            if unit / part <= most / 4:
                return unit / part
        unit /= 10
    return unit


def panel(runs, axis, out):
    name, unit = AXES[axis]
    x0 = LEFT + axis * (W + GAP)
    values = [[(p[axis] / unit, p[3]) for p in points if p[axis] == p[axis]] for _, points in runs]
    most = max((x for line in values for x, _ in line), default=1)
    out.append(f'<rect x="{x0}" y="{TOP}" width="{W}" height="{H}" fill="none" stroke="#999"/>')
    for k in range(0, 11, 2):
        y = TOP + H - H * k / 10
        out.append(f'<line x1="{x0}" x2="{x0 + W}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        if axis == 0:
            out.append(f'<text x="{x0 - 8}" y="{y + 4}" text-anchor="end">{10 * k} %</text>')
    step = steps(most)
    k = 0
    while k * step <= most:
        x = x0 + W * k * step / most
        out.append(f'<text x="{x}" y="{TOP + H + 18}" text-anchor="middle">{k * step:g}</text>')
        k += 1
    out.append(f'<text x="{x0 + W / 2}" y="{TOP + H + 38}" text-anchor="middle">{name}</text>')
    for i, line in enumerate(values):
        path = " ".join(f"{x0 + W * x / most:.1f},{TOP + H - H * y:.1f}" for x, y in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2"/>')


def main():
    runs = [(os.path.basename(os.path.normpath(f)), read(f)) for f in sys.argv[1:] if os.path.exists(os.path.join(f, "rounds.csv"))]
    width, height = LEFT + 3 * (W + GAP), TOP + H + 56
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for i, (name, points) in enumerate(runs):
        x = LEFT + 230 * i
        out.append(f'<rect x="{x}" y="14" width="14" height="4" fill="{COLOURS[i % len(COLOURS)]}"/>')
        out.append(f'<text x="{x + 20}" y="20">{name}: {points[-1][3] * 100:.1f} % after {points[-1][0]:.0f}</text>')
    for axis in range(len(AXES)):
        panel(runs, axis, out)
    print("\n".join(out + ["</svg>"]))


main()
