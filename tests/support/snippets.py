"""What runs the code of a figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from components.snippets.code import Snippet

Run = Callable[[Snippet], dict[str, Any]]
