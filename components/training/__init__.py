"""Fine-tuning an encoder or a cross-encoder: settings, data, objectives, the run in a process of its own, before and after."""
