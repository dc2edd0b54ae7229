"""What is carried: the example Patterns, each real and checkable work on files."""
