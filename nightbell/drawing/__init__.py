"""Drawing what a calendar means: pure geometry over instants, and two thin ways to show it, a terminal and an SVG file."""
