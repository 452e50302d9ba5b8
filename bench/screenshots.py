"""The pictures of the documentation, taken from the running app into docs/images."""

from typing import Literal

from playwright.sync_api import Page, sync_playwright

from bench.chromium import CHROMIUM, FLAGS
from bench.rows import APP
from bench.server import ROOT, serving

Scheme = Literal["light", "dark"]
IMAGES = ROOT / "docs" / "images"
DEMO = "study=guidellm-0.8.1-simulated&load=8&max_num_seqs=64"
PAID = "usd_per_gpu_hour=2&gpu_count=1&utilization=0.6&tokens_per_day=20000000"
SHOTS = {
    "decision": f"decision?{DEMO}&{PAID}",
    "compare": f"compare?{DEMO}",
    "price": f"price?{DEMO}&{PAID}",
    "fleet": f"fleet?{DEMO}&{PAID}&demand_tps=20000",
    "acceptance": "acceptance",
    "screen": "screen",
    "results": f"results?{DEMO}",
}


def settle(page: Page) -> None:
    """Wait until the script has run and every figure stands."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_timeout(2000)
    drawn = "[...document.querySelectorAll('.figure')].every(f => f.querySelector('.main-svg'))"
    while not page.evaluate(drawn):
        page.wait_for_timeout(200)
    page.wait_for_timeout(1000)


def main() -> None:
    """Take every page in light, and one in dark, at 1440 px."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with serving(APP) as port, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        taken: list[tuple[str, Scheme]] = [*((n, "light") for n in SHOTS), ("compare", "dark")]
        for name, scheme in taken:
            page = browser.new_page(
                viewport={"width": 1440, "height": 980},
                color_scheme=scheme,
            )
            page.goto(f"http://127.0.0.1:{port}/{SHOTS[name]}")
            settle(page)
            page.screenshot(path=str(IMAGES / f"{name}-{scheme}.png"))
            page.close()
            print(f"docs/images/{name}-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
