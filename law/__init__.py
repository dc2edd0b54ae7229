"""What may happen: pure functions over frozen values. No input or output, no clock, no SQL, no Temporal."""
