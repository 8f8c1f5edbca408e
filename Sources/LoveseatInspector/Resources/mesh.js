// A picture of the peers that were found and those that are connected.

import { bytes, debounced, element, empty, failure, get, svg } from '/common.js'

export const meshView = place => {
  let isClosed = false
  const summary = element('p', { class: 'hint', role: 'status' }, 'Searching…')
  const picture = element('div', { class: 'mesh' })
  const problem = element('div')
  const names = element('ul', { class: 'nodes' })
  place.replaceChildren(element('div', { class: 'toolbar' }, element('h2', {}, 'Mesh'), summary), problem, picture, names,
    element('p', { class: 'hint' }, 'Dashed: found on this network, which anybody can claim to be. Solid: connected. A connection belongs to a found peer only if its certificate says so.'))

  const cut = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text

  const draw = mesh => {
    const nodes = mesh.nodes.filter(node => !node.isSelf)
    const connected = nodes.filter(node => node.links.length > 0).length
    const found = nodes.filter(node => node.isFound).length
    summary.textContent = `${found} found, ${connected} connected`
    problem.replaceChildren(mesh.problem ? failure(new Error(mesh.problem)) : '')
    const size = Math.max(320, Math.min(place.clientWidth - 24, 900))
    const isNarrow = size < 520
    const height = isNarrow ? size * 1.25 : Math.max(320, Math.min(size * .62, 560))
    const [x0, y0] = [size / 2, height / 2]
    const drawing = svg('svg', { viewBox: `0 0 ${size} ${height}`, role: 'img', 'aria-label': summary.textContent })
    const label = (x, y, text, name) => svg('text', { x, y, class: name, 'text-anchor': 'middle' }, text)
    const rings = Math.ceil(nodes.length / 16)
    const links = svg('g')
    const dots = svg('g')
    nodes.forEach((node, index) => {
      const ring = Math.floor(index / 16)
      const inRing = Math.min(16, nodes.length - ring * 16)
      const angle = -Math.PI / 2 + 2 * Math.PI * ((index % 16) + ring * .5) / inRing
      const share = .98 - .25 * (rings - 1 - ring) / Math.max(1, rings)
      const x = x0 + Math.cos(angle) * (size / 2 - (isNarrow ? 48 : 76)) * share
      const y = y0 + Math.sin(angle) * (height / 2 - 48) * share
      const isBusy = node.links.some(link => link.state === 'busy')
      if (node.links.length > 0) {
        const line = svg('line', { x1: x0, y1: y0, x2: x, y2: y, class: `link ${isBusy ? 'busy' : ''}` })
        links.append(line)
        const pending = node.links.reduce((sum, link) => sum + link.pendingBytes, 0)
        const rate = node.links.reduce((sum, link) => sum + link.rate.sent + link.rate.received, 0)
        if (pending > 0 || rate > 0) links.append(label((x0 + x) / 2, (y0 + y) / 2 - 6, rate > 0 ? `${rate}/s` : `${bytes(pending)} pending`, 'note'))
      } else links.append(svg('line', { x1: x0, y1: y0, x2: x, y2: y, class: 'link found' }))
      dots.append(svg('circle', { cx: x, cy: y, r: 13, class: `peer ${node.links.length > 0 ? 'connected' : 'found'} ${isBusy ? 'busy' : ''}` }),
        label(x, y + 31, cut(node.name, isNarrow ? 11 : 22), 'name'))
    })
    dots.append(svg('circle', { cx: x0, cy: y0, r: 20, class: 'peer self' }), label(x0, y0 + 40, cut(mesh.self.name, 26), 'name own'))
    drawing.append(links, dots)
    picture.replaceChildren(drawing)
    names.replaceChildren(...nodes.map(node => element('li', {},
      element('strong', {}, node.name), element('span', { class: 'tag' }, node.wire),
      element('span', { class: `tag ${node.links.length > 0 ? 'good' : ''}` }, node.links.length > 0 ? node.links.map(link => `${link.direction}, ${link.state}`).join('; ') : 'found'),
      node.isPairing && element('span', { class: 'tag' }, 'waits for pairing'),
      node.path && element('span', { class: 'hint' }, `database ${node.path}`),
      node.interfaces?.length > 0 && element('span', { class: 'hint' }, `on ${node.interfaces.join(', ')}`))))
    if (nodes.length === 0) names.replaceChildren(element('li', { class: 'plain' }, empty('No other peer', 'Peers appear when they connect, and when they are advertised (`serve --advertise`).')))
  }

  let last = ''
  let shown
  const load = async () => {
    try {
      const mesh = await get('mesh')
      if (isClosed) return
      shown = mesh
      const text = JSON.stringify([mesh, place.clientWidth])
      if (text !== last) draw(mesh)
      last = text
    } catch (error) { if (!isClosed) problem.replaceChildren(failure(error)) }
  }
  load()
  const timer = setInterval(load, 1500)
  const resized = debounced(150, () => { if (shown) draw(shown) })
  window.addEventListener('resize', resized)
  return {
    close: () => {
      isClosed = true
      clearInterval(timer)
      window.removeEventListener('resize', resized)
    },
  }
}
