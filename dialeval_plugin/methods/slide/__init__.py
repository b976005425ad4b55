"""SLIDE and its small language model (SLM): Zhao et al. 2024, "SLIDE: A Framework Integrating Small and Large Language Models"."""
