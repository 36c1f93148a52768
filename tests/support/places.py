"""Where tests find the project's own files, and the data for measuring that may lie beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
DATA = ROOT.parent / "shared" / "data"  # real data; tests that need it skip without it
REAL_SENTENCES = DATA / "sentences-36k.txt"
