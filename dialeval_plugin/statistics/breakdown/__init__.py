"""Agreement of breakdown detectors with annotators."""
