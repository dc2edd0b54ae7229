"""What fast means here, measured: ratios side by side in one run (DESIGN 12). Start with `python -m benchmarks`."""
