"""Runtimes of trained models: torch, or onnxruntime and OpenVINO on exported graphs, without torch."""
