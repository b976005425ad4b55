"""What runs a trained model: torch, or graphs that onnxruntime and OpenVINO run without it."""
