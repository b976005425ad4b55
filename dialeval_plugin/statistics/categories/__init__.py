"""Agreement of labels: statistics of confusion matrices, Krippendorff's alpha, thresholds chosen by cost."""
