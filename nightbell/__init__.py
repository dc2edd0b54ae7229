"""Who asks: the command line, the embedded stack, settings, and the place where everything meets."""
