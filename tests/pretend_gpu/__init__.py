"""The project on a pretend CUDA machine: `python -m tests.pretend_gpu` (see accelerator.py)."""
