"""Agreement of labels: confusion matrices and what follows from them, Krippendorff's alpha, thresholds that a cost picks."""
