"""What axe-core finds on a page: colours, names and roles that people need who cannot see it, or not well."""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

SERIOUS = ["serious", "critical"]
# Not in frames: axe-core would have to be in each of them, and waits half a second for every frame without it. Not in plotly's
# drawings: of text in an SVG it cannot tell the contrast, though it tries long. Its rule "region" is of moderate impact only.
RUN = """async ([impacts, exclude]) => {
    // A colour that fades in has too little contrast for some frames; what turns for ever or is paused is not waited for, nor,
    // for ever, what is paused or loses its frames meanwhile: its promise is never kept.
    const within = (ms, promise, late) => Promise.race([promise, new Promise((done) => setTimeout(done, ms)).then(late)]);
    await within(12_000, Promise.allSettled(document.getAnimations()
        .filter(({playState, effect}) => playState === "running" && effect.getComputedTiming().endTime < 10_000)
        .map(({finished}) => finished)), () => {});
    const options = {resultTypes: ["violations"], iframes: false, rules: {region: {enabled: false}}};
    const {violations} = await within(120_000, axe.run({include: "html", exclude}, options),
        () => { throw new Error("axe-core has not ended after two minutes"); });
    return violations.filter(({impact}) => impacts.includes(impact)).flatMap(({id, nodes}) => nodes.map((node) =>
        `${id}: ${node.target} ${node.html.slice(0, 120)} ${node.failureSummary.slice(0, 300)}`));
}"""


DRAWINGS = ".js-plotly-plot .main-svg"
FRAME = ("[data-testid=stSidebar]", "[data-testid=stHeader]")  # the same around every view of a page


def serious_findings(page: Page, with_frame: bool = True) -> list[str]:
    """Each serious or critical finding of axe-core on the page as it is drawn now: rule, element and what to mend.

    Without the frame it takes half as long: for further views of a page whose frame has been looked at.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(RUN, [SERIOUS, [[DRAWINGS], *([part] for part in FRAME if not with_frame)]])
    return found
