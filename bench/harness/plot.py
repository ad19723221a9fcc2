"""Draws how time grows with size, as an SVG that is readable on light and dark paper."""

import html
import math

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 30, 50
# Chosen to be told apart by most people, on white and on black.
COLOURS = {"proem": "#d9480f", "floor": "#868e96"}
OTHERS = ["#1c7ed6", "#2f9e44", "#9c36b5", "#e8a302", "#0c8599", "#c2255c"]
STYLE = """text { font: 12px sans-serif; fill: #333 }
.axis { stroke: #999; stroke-width: 1 } .grid { stroke: #ddd; stroke-width: 0.5 }
.linear { stroke: #999; stroke-dasharray: 5 4; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } .axis { stroke: #777 } }"""


def draw(title, unit, curves):
    """`curves` are (name, who, points); points are (size, value) with both above 0."""
    every = [point for _, _, points in curves for point in points]
    across = Axis([size for size, _ in every], LEFT, WIDTH - RIGHT)
    up = Axis([value for _, value in every], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>",
        f'<text x="{LEFT}" y="18" font-weight="bold">{html.escape(title)}</text>',
    ]
    for power in across.powers():
        x = across.place(10**power)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{10**power:,}</text>'
        )
    for power in up.powers():
        y = up.place(10**power)
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{unit(10**power)}</text>'
        )
    parts.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    parts += lines(curves, across, up)
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">size; dashed: linear growth</text></svg>'
    )
    return "\n".join(parts) + "\n"


def lines(curves, across, up):
    colours = iter(OTHERS * 4)
    ends = []
    for name, who, points in curves:
        colour = COLOURS.get(who) if len([1 for _, other, _ in curves if other == who]) == 1 else None
        colour = colour or next(colours)
        (size, value), (last, _) = points[0], points[-1]
        if who == "proem":
            # Up to the end of the paper: cut there, not bent.
            factor = min(last / size, up.top() / value)
            yield path([(size, value), (size * factor, value * factor)], across, up, 'class="linear"')
        yield path(points, across, up, f'stroke="{colour}" stroke-width="2" fill="none"')
        for point in points:
            yield f'<circle cx="{across.place(point[0]):.1f}" cy="{up.place(point[1]):.1f}" r="3" fill="{colour}"/>'
        ends.append((up.place(points[-1][1]), name, colour))
    low = -math.inf
    for y, name, colour in sorted(ends):
        low = max(y, low + 14)  # Names must not cover each other.
        yield f'<text x="{WIDTH - RIGHT + 8}" y="{low + 4:.1f}" style="fill: {colour}">{html.escape(name)}</text>'


def path(points, across, up, style):
    steps = "L".join(f"{across.place(size):.1f} {up.place(value):.1f}" for size, value in points)
    return f'<path {style} d="M{steps}"/>'


class Axis:
    """Logarithmic, with a little room at both ends."""

    def __init__(self, values, start, end):
        self.low, self.high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1
        if len(self.powers()) < 2:
            # So little difference must not look like much, and there must be two marks to read it by.
            self.low, self.high = math.floor(self.low) - 0.05, math.ceil(self.high) + 0.05
        self.start, self.end = start, end

    def place(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + min(max(part, -0.02), 1.02) * (self.end - self.start)

    def top(self):
        return 10**self.high

    def powers(self):
        return range(math.ceil(self.low), math.floor(self.high) + 1)
