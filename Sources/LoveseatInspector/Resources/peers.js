// Connected peers, rates, events, what is pending, and peers of earlier connections.

import { bytes, clock, counted, day, documentLink, duration, element, empty, failure, get, svg, throttled } from '/common.js'

const maximumEvents = 1000

export const peersView = place => {
  let isClosed = false
  let process
  let events = []
  let seen = new Set()
  const summary = element('p', { class: 'hint', role: 'status' }, 'Loading…')
  const chart = element('div', { class: 'chart' })
  const peers = element('div', { class: 'peers' })
  const past = element('div')
  const search = element('input', { type: 'search', placeholder: 'Filter by any text', 'aria-label': 'Filter events' })
  const kind = element('select', { 'aria-label': 'Kind of event' },
    ['all', 'connected', 'up-to-date', 'transferred', 'failed', 'offline', 'disconnected'].map(name => element('option', { value: name }, name === 'all' ? 'all events' : name)))
  const list = element('ol', { class: 'events', tabindex: 0, 'aria-label': 'Events' })
  const eventCount = element('span', { class: 'hint' })
  const remote = element('select', { 'aria-label': 'Remote database' })
  const pending = element('div')
  const pendingSection = element('section', { class: 'card', hidden: true }, element('h3', {}, 'Pending, and why'),
    element('div', { class: 'toolbar' }, remote), pending)
  place.replaceChildren(
    element('div', { class: 'toolbar' }, element('h2', {}, 'Peers'), summary), chart, peers, pendingSection,
    element('section', { class: 'card' }, element('div', { class: 'toolbar' }, element('h3', {}, 'Events'), eventCount, search, kind), list),
    element('section', { class: 'card' }, element('h3', {}, 'Earlier peers'), past))

  // Peers

  const fact = (name, ...value) => [element('dt', {}, name), element('dd', {}, ...value)]
  const pendingText = peer => {
    const parts = [
      peer.pendingOut > 0 && `${counted(peer.pendingOut, 'document')} to the peer`, peer.pendingIn > 0 && `${counted(peer.pendingIn, 'document')} from the peer`,
    ].filter(part => part)
    return parts.length === 0 ? 'nothing' : parts.join(', ')
  }
  const choice = peer => element('button', { type: 'button', onclick: () => {
    remote.value = `peer:${peer.key}`
    showPending()
    pendingSection.scrollIntoView({ behavior: 'smooth' })
  } }, 'Which?')
  const card = (peer, now) => element('article', { class: 'card peer' },
    element('h3', {},
      element('span', { class: `dot ${peer.state}`, title: peer.state }), peer.title,
      element('span', { class: 'tag' }, peer.direction === 'incoming' ? '← incoming' : '→ outgoing'),
      element('span', { class: 'tag' }, peer.wire)),
    element('dl', {},
      fact('state', peer.state, peer.error ? `: ${peer.error}` : ''),
      fact('address', peer.address || 'not known'),
      peer.user ? fact('user', peer.user) : [],
      fact('connected', `for ${duration(now - peer.since)}, since ${clock(peer.since)}`),
      fact('certificate', peer.certificate ?? (peer.fingerprint ? 'without a name' : 'none was shown')),
      peer.fingerprint ? fact('pin', element('code', { class: 'pin' }, peer.fingerprint)) : [],
      fact('lag', peer.lag === undefined ? 'none' : duration(peer.lag)),
      fact('pending', element('span', { class: 'toolbar' }, element('span', {}, pendingText(peer)), peer.pendingDocuments > 0 && choice(peer))),
      peer.why === 'refused' ? fact('why', element('span', { class: `tag ${peer.why === 'refused' ? 'bad' : ''}` }, peer.why), peer.failures > 0 ? ` ${counted(peer.failures, 'document')} failed` : '') : [],
      fact('documents', `${peer.sent.toLocaleString('en')} sent, ${peer.received.toLocaleString('en')} received`),
      fact('rate', `${peer.rate.sent} sent/s, ${peer.rate.received} received/s, ${bytes(peer.rate.bytes)}/s`)))

  const showPeers = report => {
    if (!report.isServing) {
      summary.textContent = ''
      return peers.replaceChildren(empty('This database is not being served', 'Run `loveseat serve` to let peers connect. They appear here at once.'))
    }
    summary.textContent = `${counted(report.peers.length, 'peer')} connected`
    peers.replaceChildren(...(report.peers.length === 0
      ? [empty('No peer is connected', 'Peers appear here when they connect.')]
      : report.peers.map(peer => card(peer, report.time))))
  }

  // Rates: two lines, documents that were sent and received in each of the last 120 seconds.

  const showRates = rates => {
    const [width, height] = [600, 90]
    const top = Math.max(5, ...rates.map(([sent, received]) => Math.max(sent, received)))
    const points = index => rates.map((sample, second) =>
      `${(width - (rates.length - 1 - second) * width / 119).toFixed(1)},${(height - 4 - sample[index] * (height - 10) / top).toFixed(1)}`).join(' ')
    const last = rates.at(-1) ?? [0, 0, 0]
    chart.replaceChildren(
      element('div', { class: 'legend' },
        element('span', { class: 'sent' }, `${last[0]} sent/s`), element('span', { class: 'received' }, `${last[1]} received/s`),
        element('span', {}, `${bytes(last[2])}/s`), element('span', { class: 'hint' }, `2 minutes, up to ${top} documents/s`)),
      svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${last[0]} documents sent and ${last[1]} received per second` },
        svg('line', { x1: 0, x2: width, y1: height - 4, y2: height - 4, class: 'axis' }),
        svg('polyline', { points: points(0), class: 'sent' }), svg('polyline', { points: points(1), class: 'received' })))
  }

  // Events

  const addEvents = report => {
    if (report.process !== process) {
      process = report.process
      events = []
      seen = new Set()
    }
    const added = (report.events ?? []).filter(event => !seen.has(event.number))
    if (added.length === 0 && events.length > 0) return
    for (const event of added) seen.add(event.number)
    events = [...events, ...added].sort((one, other) => one.number - other.number)
    for (const event of events.splice(0, Math.max(0, events.length - maximumEvents))) seen.delete(event.number)
    showEvents()
  }
  // The number that tells apart connections of peers with the same name; `loveseat serve` prints it, too.
  const numbered = event => event.connection?.startsWith('in-') ? `(${event.connection.slice(3)})` : ''
  const showEvents = () => {
    const text = search.value.toLowerCase()
    const matching = events.filter(event => (kind.value === 'all' || event.kind === kind.value) &&
      (!text || `${event.peer} ${numbered(event)} ${event.text} ${event.document ?? ''} ${event.kind} ${event.why ?? ''}`.toLowerCase().includes(text)))
    eventCount.textContent = matching.length === events.length ? `${events.length}` : `${matching.length} of ${events.length}`
    list.replaceChildren(...matching.slice(-maximumEvents).reverse().map(event => element('li', {},
      element('time', {}, clock(event.time)), element('span', { class: `tag ${event.kind === 'failed' ? 'bad' : ''}` }, event.kind),
      element('strong', {}, event.peer), numbered(event) && element('span', { class: 'hint' }, numbered(event)), element('span', {}, event.document ? `${event.document}: ${event.text}` : event.text),
      event.why && element('span', { class: 'tag' }, event.why))))
    if (matching.length === 0) list.replaceChildren(element('li', { class: 'hint' }, events.length === 0 ? 'Nothing has happened yet.' : 'No event matches.'))
  }
  search.addEventListener('input', showEvents)
  kind.addEventListener('change', showEvents)

  // Pending

  let shown = ''
  const showPending = async () => {
    const chosen = remote.value
    if (!chosen) return
    const [kind, name] = [chosen.slice(0, chosen.indexOf(':')), chosen.slice(chosen.indexOf(':') + 1)]
    try {
      const answer = await get('pending', { [kind]: name })
      if (isClosed || remote.value !== chosen) return
      const text = JSON.stringify([chosen, answer])
      if (text === shown) return
      shown = text
      const counts = Object.entries(answer.counts)
      pending.replaceChildren(
        element('p', {}, counts.length === 0 ? 'Nothing is pending, as far as this side knows.' : counts.map(([why, count]) => element('span', { class: 'tag' }, `${why} ${count.toLocaleString('en')}${answer.isCut ? ' or more' : ''}`))),
        element('ul', { class: 'pending' }, answer.documents.slice(0, 200).map(document => element('li', {},
          kind === 'peer' && element('span', { class: 'tag', title: document.way === 'out' ? 'to the peer' : 'from the peer' }, document.way === 'out' ? '→' : '←'),
          document.collection && (kind !== 'peer' || document.way === 'out') ? element('a', { href: documentLink(document.collection, document.id) }, document.id) : element('strong', {}, document.id),
          element('span', { class: `tag ${document.why === 'pending' ? '' : 'bad'}` }, document.why),
          element('span', { class: 'hint' }, document.time ? `${clock(document.time)}: ${document.detail}` : document.detail)))))
    } catch (error) {
      shown = ''
      if (!isClosed && remote.value === chosen) pending.replaceChildren(failure(error))
    }
  }
  const refreshPending = throttled(1000, showPending)
  remote.addEventListener('change', showPending)

  // Earlier peers

  const showPast = (entries, remotes, now) => {
    const known = new Set(entries.map(entry => entry.address))
    const others = remotes.filter(address => !known.has(address))
    if (entries.length + others.length === 0) return past.replaceChildren(empty('No peer has been here yet'))
    past.replaceChildren(element('div', { class: 'scrolled' }, element('table', {},
      element('thead', {}, element('tr', {}, ['Peer', 'Side', 'Wire', 'Last seen', 'Last up to date', 'Sent', 'Received'].map(title => element('th', { scope: 'col', class: ['Sent', 'Received'].includes(title) ? 'number' : null }, title)))),
      element('tbody', {},
        entries.map(entry => element('tr', {}, element('td', { title: entry.fingerprint ?? entry.address }, entry.title), element('td', {}, entry.direction), element('td', {}, entry.wire),
          element('td', {}, day(entry.seen)), element('td', {}, entry.upToDate ? day(entry.upToDate) : 'never'),
          element('td', { class: 'number' }, entry.sent.toLocaleString('en')), element('td', { class: 'number' }, entry.received.toLocaleString('en')))),
        others.map(address => element('tr', {}, element('td', {}, address), element('td', {}, 'outgoing'), element('td', { colspan: 5, class: 'hint' }, 'its times were not recorded')))))))
  }

  // Whose pending documents can be listed: connected peers, and remote databases that this one has checkpoints for.
  let remotes = []
  let choices = ''
  const showChoices = report => {
    remotes = report.remotes ?? remotes
    const connected = report.peers.filter(peer => peer.pendingDocuments !== undefined || peer.direction === 'outgoing')
    const known = JSON.stringify([remotes, connected.map(peer => [peer.key, peer.title])])
    if (known !== choices) {
      choices = known
      const chosen = remote.value
      const group = (label, options) => options.length > 0 && element('optgroup', { label }, options)
      remote.replaceChildren(...[
        group('Connected', connected.map(peer => element('option', { value: `peer:${peer.key}` }, `${peer.title} ${peer.direction === 'incoming' ? '←' : '→'}`))),
        group('Remote databases', remotes.map(address => element('option', { value: `remote:${address}` }, address))),
      ].filter(options => options))
      const waiting = connected.find(peer => peer.pendingDocuments > 0)
      if ([...remote.options].some(option => option.value === chosen)) remote.value = chosen
      else if (waiting) remote.value = `peer:${waiting.key}`
      pendingSection.hidden = remote.options.length === 0
      if (remote.value !== chosen) showPending()
    }
    // What is pending at a remote database changes only with this one.
    if (remote.value.startsWith('peer:')) refreshPending()
  }

  const load = async () => {
    try {
      let report = await get('peers')
      if (isClosed) return
      showPeers(report)
      showRates(report.rates)
      showPast(report.past, report.remotes, report.time)
      showChoices(report)
      addEvents(report)
      // The log comes in pieces.
      while (report.events.length > 0 && report.events.at(-1).number < report.lastEvent && !isClosed) {
        report = await get('peers', { after: report.events.at(-1).number })
        addEvents(report)
      }
    } catch (error) { if (!isClosed) peers.replaceChildren(failure(error)) }
  }
  load()
  const refreshPast = throttled(1000, async () => {
    const report = await get('peers', { after: 1000000000 }).catch(() => undefined)
    if (report && !isClosed) {
      showPast(report.past, report.remotes, report.time)
      showChoices(report)
      refreshPending()
    }
  })
  let lastPast = ''
  return {
    peers: report => {
      showPeers(report)
      if (!report.isServing) return showChoices({ peers: [] })
      showRates(report.rates)
      addEvents(report)
      showChoices(report)
      const keys = JSON.stringify(report.past.map(entry => [entry.key, entry.upToDate]))
      if (keys !== lastPast) {
        lastPast = keys
        refreshPast()
      }
    },
    changed: refreshPast,
    close: () => { isClosed = true },
  }
}
