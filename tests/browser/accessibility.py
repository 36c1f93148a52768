"""What axe-core finds on a page: colours, names and roles that people need who cannot see it, or not well."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SERIOUS = {"serious", "critical"}


def serious_findings(page: Page) -> list[str]:
    """Each serious or critical finding of axe-core on the page as it is drawn now: rule, element and what to mend."""
    return [
        f"{rule['id']}: {node['target']} {node['html'][:120]} {node['failureSummary'][:300]}"
        for rule in Axe().run(page).response["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]
