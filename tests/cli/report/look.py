"""Looks at pages in Chromium, through its own pipe: look.py AXE FOLDER PAGE..., and prints an object a line."""

import json
import os
import subprocess
import sys

OPEN = "document.querySelectorAll('details').forEach(it => it.open = true)"
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ACTED = """({pwned: typeof window.pwned, elements:
    document.querySelectorAll('script, iframe, object, embed, base, link, img, form, audio, video').length,
    handlers: [...document.querySelectorAll('*')].filter(it => [...it.attributes].some(one =>
        one.name.startsWith('on') || one.name == 'style' || one.name == 'src')).length})"""
AXE = """axe.run(document).then(found => found.violations.map(it =>
    it.id + ': ' + it.nodes.map(node => node.html.slice(0, 200)).slice(0, 3).join(' ')))"""


class Browser:
    """A browser that takes commands on its descriptor 3, and answers on 4, each behind a zero byte."""

    def __init__(self, folder):
        read, self.out = os.pipe()
        self.into, write = os.pipe()
        flags = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
            *("--remote-debugging-pipe", f"--user-data-dir={folder}/profile", "about:blank"),
        ]

        def place():
            # Neither may be in the place of the other.
            ends = os.dup(read), os.dup(write)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        with open(f"{folder}/browser.log", "wb") as log:
            self.process = subprocess.Popen(
                ["chromium", *flags], preexec_fn=place, close_fds=False, stdout=log, stderr=log, env=dict(os.environ, HOME=folder)
            )
        os.close(read)
        os.close(write)
        self.rest, self.number, self.session, self.events = b"", 0, None, []

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def next(self):
        while b"\0" not in self.rest:
            read = os.read(self.into, 1 << 20)
            assert read, "the browser has ended"
            self.rest += read
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.next())

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, page):
        if not self.session:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
        self.show("light", 1100)
        self.events.clear()
        self.ask("Page.navigate", url=f"file://{page}")
        self.wait_for("Page.loadEventFired")

    def show(self, scheme, width, media="screen"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)


def look(browser, page, axe):
    browser.open(page)
    found = {"acted": browser.value(ACTED), "title": browser.value("document.title")}
    browser.value(axe)
    found["wide"] = []
    for is_open in (False, True):
        if is_open:
            browser.value(OPEN)
        for width in (360, 1100):
            browser.show("light", width)
            found["wide"].append(browser.value(WIDE))
    for scheme in ("light", "dark"):
        browser.show(scheme, 1100)
        found[scheme] = browser.value(AXE)
    browser.show("light", 800, "print")
    found["pdf"] = len(browser.ask("Page.printToPDF")["data"]) > 1000
    told = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
    found["messages"] = [event["params"] for event in browser.events if event.get("method") in told]
    sent = [event["params"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"]
    found["requests"] = [it["request"]["url"] for it in sent]
    return found


def main(axe, folder, *pages):
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    browser = Browser(folder)
    try:
        for page in pages:
            print(json.dumps(look(browser, page, axe)), flush=True)
    finally:
        browser.process.kill()
        browser.process.wait()


main(*sys.argv[1:])
