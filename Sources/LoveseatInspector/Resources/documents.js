// The collections, and the documents of one: only the rows that are visible exist.

import { bytes, counted, debounced, documentLink, element, empty, failure, get, short, throttled } from '/common.js'

const rowHeight = 34
const pageLength = 100
const keptPages = 60
// Browsers do not draw taller elements reliably.
const maximumHeight = 12_000_000

export const documentsView = (place, [name]) => {
  let collection = name || '_default._default'
  let filter = {}
  let count = 0
  let columns = []
  let isNarrow = false
  let pages = new Map()
  let generation = 0
  let stops = new AbortController()

  const list = element('ul', { class: 'collections' })
  const prefix = element('input', { type: 'search', placeholder: 'ID begins with…', 'aria-label': 'ID begins with' })
  const condition = element('input', {
    type: 'search', class: 'wide', placeholder: "SQL++ condition: city = 'Oslo' AND likes > 3", 'aria-label': 'SQL++ condition',
  })
  const conflicts = element('input', { type: 'checkbox' })
  const summary = element('p', { class: 'hint', role: 'status' }, 'Loading…')
  const head = element('div', { class: 'row head', role: 'row' })
  const spacer = element('div', { class: 'spacer', role: 'presentation' })
  const scroller = element('div', { class: 'scroller', tabindex: 0, role: 'table', 'aria-label': 'Documents' }, head, spacer)
  const message = element('div')
  const side = element('aside', {}, element('h2', {}, 'Collections'), list)
  const title = element('h2', {}, collection)
  place.replaceChildren(side, element('section', { class: 'list' },
    element('div', { class: 'toolbar' }, title, summary),
    element('div', { class: 'toolbar' }, prefix, condition, element('label', { class: 'check' }, conflicts, 'only conflicts')),
    message, scroller))

  const showCollections = async () => {
    const { collections } = await get('totals')
    list.replaceChildren(...collections.map(item => element('li', {},
      element('a', {
        href: `#/documents/${encodeURIComponent(item.name)}`, 'aria-current': item.name === collection ? 'true' : null,
      },
        element('span', { class: 'name' }, item.name),
        element('span', { class: 'hint' }, `${counted(item.documents, 'document')}, ${bytes(item.bytes)}`),
        item.conflicts > 0 && element('span', { class: 'tag bad' }, counted(item.conflicts, 'conflict'))))))
  }

  const height = () => Math.min(count * rowHeight, maximumHeight)
  const visibleRows = () => Math.max(1, Math.ceil(scroller.clientHeight / rowHeight))
  const firstRow = () => {
    if (count * rowHeight <= maximumHeight) return Math.floor(scroller.scrollTop / rowHeight)
    const room = Math.max(1, maximumHeight - scroller.clientHeight)
    return Math.floor(Math.min(1, scroller.scrollTop / room) * Math.max(0, count - visibleRows() + 2))
  }

  const chooseColumns = documents => {
    const seen = new Map()
    for (const { values } of documents) for (const [key] of values) seen.set(key, (seen.get(key) ?? 0) + 1)
    isNarrow = place.clientWidth < 700
    const room = isNarrow ? 1 : place.clientWidth < 1100 ? 3 : 5
    columns = [...seen].sort((one, other) => other[1] - one[1]).slice(0, room).map(([key]) => key)
    const layout = `minmax(9rem, 1.4fr) ${columns.map(() => 'minmax(5rem, 1fr)').join(' ')} 5.5rem${isNarrow ? '' : ' 7.5rem'}`
    scroller.style.setProperty('--columns', layout)
    head.replaceChildren(...['ID', ...columns, 'Size', ...(isNarrow ? [] : ['Revision'])].map((text, index) =>
      element('span', { role: 'columnheader', class: index === columns.length + 1 ? 'number' : null }, text)))
  }

  const rows = []
  const draw = () => {
    const first = Math.max(0, firstRow() - 6)
    const last = Math.min(count, first + visibleRows() + 14)
    const isScaled = count * rowHeight > maximumHeight
    const start = isScaled ? scroller.scrollTop - 6 * rowHeight : first * rowHeight
    while (rows.length < last - first) {
      const row = element('div', { class: 'row', role: 'row' })
      rows.push(row)
      spacer.append(row)
    }
    while (rows.length > Math.max(0, last - first)) rows.pop().remove()
    rows.forEach((row, index) => {
      const number = first + index
      const item = pages.get(Math.floor(number / pageLength))?.documents?.[number % pageLength]
      row.style.transform = `translateY(${start + index * rowHeight}px)`
      const key = `${generation} ${number} ${item?.revision ?? ''} ${columns.length}`
      if (row.dataset.key === key) return
      row.dataset.key = key
      row.setAttribute('aria-rowindex', number + 1)
      fill(row, item)
    })
    want(Math.floor(first / pageLength), Math.floor(Math.max(first, last - 1) / pageLength))
  }

  const fill = (row, item) => {
    if (!item) {
      row.classList.add('waiting')
      return row.replaceChildren(element('span', { role: 'cell' }, '…'))
    }
    row.classList.remove('waiting')
    const values = new Map(item.values.map(([key, kind, text]) => [key, { kind, text }]))
    row.replaceChildren(
      element('a', { role: 'cell', href: documentLink(collection, item.id), title: item.id }, item.id),
      ...columns.map(key => {
        const value = values.get(key)
        return element('span', { role: 'cell', class: value ? `value ${value.kind}` : null }, value?.text ?? '')
      }),
      element('span', { role: 'cell', class: 'number' }, bytes(item.bytes)),
      ...(isNarrow ? [] : [element('span', { role: 'cell', class: 'hint' }, short(item.revision))]))
  }

  const want = (first, last) => {
    for (let page = first; page <= last; page++) if (!pages.has(page)) load(page)
  }

  const load = async page => {
    const mine = generation
    const entry = { used: performance.now(), documents: pages.get(page)?.documents }
    pages.set(page, entry)
    if (pages.size > keptPages) {
      const [oldest] = [...pages].sort((one, other) => one[1].used - other[1].used)[0]
      pages.delete(oldest)
    }
    try {
      const answer = await get('documents',
        { collection, ...filter, offset: page * pageLength, limit: pageLength }, stops.signal)
      if (mine !== generation) return
      entry.documents = answer.documents
      if (columns.length === 0 || page === 0) chooseColumns(answer.documents)
      accept(answer)
    } catch (error) {
      if (mine !== generation || error.name === 'AbortError') return
      message.replaceChildren(failure(error))
      summary.textContent = ''
    }
  }

  const accept = answer => {
    count = answer.count
    spacer.style.height = `${height()}px`
    summary.textContent = `${counted(count, 'document')}${answer.isCut ? ', and more' : ''}`
    const isFiltered = Object.keys(filter).length > 0
    message.replaceChildren(...(count === 0
      ? [empty(isFiltered ? 'No document matches' : 'This collection is empty', isFiltered ? null : 'Documents appear here as they are saved or pulled.')]
      : []))
    scroller.hidden = count === 0
    draw()
  }

  const restart = keepsPlace => {
    stops.abort()
    stops = new AbortController()
    generation += 1
    const old = pages
    pages = new Map()
    message.replaceChildren()
    if (!keepsPlace) {
      scroller.scrollTop = 0
      columns = []
      count = 0
      scroller.hidden = false
      for (const row of rows.splice(0)) row.remove()
      load(0)
    } else {
      // The old rows stay until the new ones are here.
      const first = Math.floor(firstRow() / pageLength)
      for (const [page, entry] of old) if (page === first || page === first + 1) pages.set(page, entry)
      for (const page of [...pages.keys()]) load(page)
      if (pages.size === 0) load(0)
    }
  }

  const search = debounced(200, () => {
    filter = {}
    if (condition.value.trim()) filter.where = condition.value.trim()
    else if (conflicts.checked) filter.conflicts = 1
    else if (prefix.value) filter.prefix = prefix.value
    restart(false)
  })
  prefix.addEventListener('input', search)
  condition.addEventListener('input', search)
  conflicts.addEventListener('change', search)

  let isDrawing = false
  scroller.addEventListener('scroll', () => {
    if (isDrawing) return
    isDrawing = true
    requestAnimationFrame(() => {
      isDrawing = false
      draw()
    })
  }, { passive: true })
  const sizes = new ResizeObserver(() => { if (count > 0) draw() })
  sizes.observe(scroller)

  load(0)
  showCollections().catch(error => side.append(failure(error)))
  const refresh = throttled(400, () => {
    restart(true)
    showCollections().catch(() => {})
  })
  return {
    changed: refresh,
    close: () => {
      stops.abort()
      sizes.disconnect()
      generation += 1
    },
  }
}
