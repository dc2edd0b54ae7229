"""How the drawing looks: one style sheet, light or dark as its reader prefers, and the two hatches of a repeated time."""

STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --line: #d8dee4; --band: #f6f8fa; --ring: #0969da;
  --window: #8ec1f5; --jitter: #d3e7fb; --late: #cf222e; --fold: #9a6700; --gap: #8250df; --dense: #0969da; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #30363d; --band: #151b23; --ring: #58a6ff;
    --window: #1f4f86; --jitter: #13294a; --late: #ff7b72; --fold: #d29922; --gap: #bc8cff; --dense: #58a6ff; }
}
text { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 12px; fill: var(--ink); }
.title { font-size: 17px; font-weight: 600; }
.quiet { fill: var(--quiet); font-size: 11px; }
.day { text-anchor: end; }
.hour { text-anchor: middle; }
.paper { fill: var(--paper); }
.band { fill: var(--band); }
.row { fill: none; stroke: var(--line); }
.grid { stroke: var(--line); }
.outside { fill: var(--line); opacity: 0.6; }
.window { fill: var(--window); }
.jitter { fill: var(--jitter); stroke: var(--window); stroke-dasharray: 2 2; }
.ring { fill: var(--ring); }
.lost { stroke: var(--late); stroke-width: 2; fill: none; }
.latest { stroke: var(--ink); stroke-width: 2; }
.finish { stroke: var(--late); stroke-width: 2; fill: var(--late); }
.hatch { stroke: var(--fold); stroke-width: 1.2; }
.fold { fill: var(--fold); font-size: 11px; }
.cut { stroke: var(--gap); stroke-width: 2; fill: none; }
.gap { fill: var(--gap); font-size: 11px; }
.dense { fill: var(--dense); }
"""

HATCHES = (
    ("first-reading", "M-1 7 L7 -1 M2 10 L10 2 M-4 4 L4 -4"),
    ("second-reading", "M-1 1 L7 9 M2 -2 L10 6 M-4 4 L4 12"),
)
"""Each an id and the strokes of an eight by eight tile: rising for the first reading, falling for the second."""
HATCH_SIZE = 8
