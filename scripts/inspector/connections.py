"""The views of peers and of the mesh, and `loveseat top`."""

import json

from inspected import check, wait_until
from harness import Skipped
from views import contains, post, sights


def peers(folder, browser):
    """Peers: who is connected, rates, events and what is pending, live, beside `serve` and in it"""
    folder.fill("trips", sights(2_000))
    folder.run("create", "copy")
    served = folder.serve("trips", "--inspect").with_page()
    pin = served.line(r"pin (\w{64})")
    beside = folder.inspect("trips")
    browser.open(beside.page)
    browser.run("location.hash = '#/peers'")
    browser.wait(contains("No peer is connected"), what="the empty state")
    sync = folder.start("sync", "copy", served.url, "--pin", pin, "--continuous")
    browser.wait(contains("1 peer connected"), what="the peer, live")
    browser.wait(contains("2,000 sent"), what="the documents")
    browser.wait("return document.querySelectorAll('.events li').length >= 3", what="the events")
    browser.wait("return document.querySelector('.chart polyline.sent').getAttribute('points').split(' ').length > 2", what="the chart")
    check(browser.run(contains("incoming")) and browser.run(contains("BLIP")), "direction and wire")
    browser.run("const input = document.querySelector('[aria-label=\"Filter events\"]'); input.value = 'up to date'; input.dispatchEvent(new Event('input'))")
    browser.wait("return [...document.querySelectorAll('.events li')].every(line => line.textContent.includes('up to date'))", what="the filter")
    report = json.loads(folder.run("top", "trips", "--once", "--json"))
    check(report["peers"][0]["sent"] == 2_000 and report["peers"][0]["direction"] == "incoming", f"{report}")
    check("2000" in folder.run("top", "trips", "--once"), "the table of top")
    # The other side sees the same connection.
    other = json.loads(folder.run("top", "copy", "--once", "--json"))
    check(other["peers"][0]["direction"] == "outgoing" and other["peers"][0]["fingerprint"] == pin, f"{other}")
    post(served.root + "api/save", {"collection": "_default", "id": "new", "body": {"n": 1}}, {"Authorization": f"Bearer {served.token}"})
    browser.wait(contains("2,001 sent"), what="one more document, live")
    # A peer that answers nothing: what it does not have is listed, with the reason.
    sync.pause()
    post(served.root + "api/save", {"collection": "_default", "id": "stuck", "body": {"n": 1}}, {"Authorization": f"Bearer {served.token}"})
    browser.wait("return [...document.querySelectorAll('.pending li')].some(line => line.textContent.includes('stuck') && line.textContent.includes('pending'))", what="the document that waits")
    browser.wait(contains("1 document to the peer"), what="the number of them")
    table = folder.run("top", "trips", "--once", "--pending")
    check("_default._default/stuck (to the peer): pending: it was offered" in table, table)
    sync.resume()
    browser.wait(contains("2,002 sent"), what="the document, late")
    browser.wait("return document.querySelectorAll('.pending li').length === 0", what="an empty list")
    check(sync.interrupt() == 0, "sync did not end normally")
    browser.wait(contains("No peer is connected"), what="the end of the connection")
    browser.wait("return document.querySelectorAll('section:last-child tbody tr').length === 1", what="the earlier peer")
    check(served.interrupt() == 0, "serve did not end normally")
    browser.wait(contains("This database is not being served"), what="the end of serve")
    browser.wait("return document.querySelectorAll('section:last-child tbody tr').length === 1", what="the earlier peer, from the database")
    # What is not at the peer, and why, without the peer.
    folder.run("put", "copy", "later", '{"n":1}')
    other = folder.inspect("copy")
    browser.open(other.page)
    browser.run("location.hash = '#/peers'")
    browser.wait("return document.querySelectorAll('.pending li').length === 1 && document.querySelector('.pending').textContent.includes('later')", what="the pending document")
    result = folder.run("top", "copy", "--once", succeeds=False)
    check(result.returncode == 66 and "not being served" in result.stderr, f"{result}")


def mesh(folder, browser):
    """The mesh: peers that are found and connected, drawn and live. One is advertised on this computer's networks"""
    for name in ("trips", "copy", "third"):
        folder.run("put", name, "a", '{"n":1}')
    here = ("--discovery", "multicast")
    # Found peers need an interface that multicasts, which the loopback interface does not.
    if folder.run("browse", "--once", *here, succeeds=False).returncode == 69:
        raise Skipped("no interface of this computer multicasts")
    served = folder.serve("trips", "--inspect", *here, "--advertise").with_page()
    pin = served.line(r"pin (\w{64})")
    browser.open(served.page)
    browser.run("location.hash = '#/mesh'")
    browser.wait("return document.querySelectorAll('.mesh circle.self').length === 1", what="this database")
    folder.serve("third", *here, "--advertise-as", "The third", interface=None)
    browser.wait("return document.querySelectorAll('.mesh circle.found').length === 1", what="the found peer", seconds=30)
    check(browser.run(contains("The third")), "its name")
    sync = folder.start("sync", "copy", served.url, "--pin", pin, "--continuous")
    browser.wait("return document.querySelectorAll('.mesh circle.connected').length === 1", what="the connected peer")
    sync.interrupt()
    browser.wait("return document.querySelectorAll('.mesh circle.connected').length === 0", what="the end of the connection")
    wait_until(lambda: browser.run(contains("1 found, 0 connected")), 10, "the counts")
