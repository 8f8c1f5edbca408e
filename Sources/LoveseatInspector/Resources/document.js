// One document: its content, revisions, differences, conflicts and blobs.

import { bytes, counted, day, element, empty, failure, get, parameters, post, short, shortVersion, svg, throttled } from '/common.js'
import { tree } from '/tree.js'

export const documentView = (place, [collection, id]) => {
  let isClosed = false
  let shown
  let difference = {}
  const load = async () => {
    try {
      const answer = await get('document', { collection, id })
      if (isClosed || JSON.stringify(answer) === JSON.stringify(shown)) return
      // What somebody is writing must not vanish.
      if (shown && place.querySelector('textarea')) return notice.replaceChildren(changedNotice(answer))
      shown = answer
      draw(answer)
    } catch (error) {
      if (!isClosed) place.replaceChildren(back(), failure(error))
    }
  }
  const notice = element('div')
  const changedNotice = answer => answer.revision === shown.revision ? '' : element('p', { class: 'note' }, 'The document was changed meanwhile.')
  const back = () => element('p', {}, element('a', { href: `#/documents/${encodeURIComponent(collection)}` }, `‹ ${collection}`))

  const draw = answer => {
    const facts = [answer.isDeleted ? 'deleted' : bytes(answer.bytes), answer.revision]
    if (answer.expires) facts.push(`expires ${day(answer.expires)}`)
    place.replaceChildren(
      element('div', { class: 'title' }, back(), element('h2', {}, id), element('p', { class: 'hint' }, facts.filter(Boolean).join(' · ')), notice),
      ...conflictSection(answer),
      element('div', { class: 'columns' },
        element('section', { class: 'card' }, content(answer)),
        element('section', { class: 'card' }, element('h3', {}, 'Revisions ', element('span', { class: 'hint' }, `${answer.revisions.length}`)), revisions(answer), differenceSection(answer))),
      ...blobSection(answer))
  }

  // Content

  const content = answer => {
    const body = element('div')
    const bar = element('div', { class: 'toolbar' }, element('h3', {}, 'Content'))
    const showTree = () => {
      const link = `/api/revision?${parameters({ collection, id, revision: answer.revision })}`
      if (answer.isDeleted) body.replaceChildren(empty('This document is deleted', 'Its deletion replicates. Older revisions may still have content.'))
      else if (answer.body === null) body.replaceChildren(element('p', {}, `The document has ${bytes(answer.bytes)}, which is too much to show. `, element('a', { href: link, download: `${id}.json` }, 'Download it')))
      else if (Object.keys(answer.body).length === 0) body.replaceChildren(empty('This document has no properties'))
      else body.replaceChildren(tree(answer.body))
    }
    if (!answer.isDeleted && answer.body !== null && answer.conflicts.length === 0) {
      bar.append(element('button', {
        type: 'button', onclick: () => body.replaceChildren(editor(answer.body, answer.revision, body => post('save', { collection, id, revision: answer.revision, body }), showTree)),
      }, 'Edit'))
    }
    showTree()
    return [bar, body]
  }

  const editor = (value, revision, save, cancel) => {
    const text = element('textarea', { rows: 16, spellcheck: 'false', 'aria-label': `JSON of revision ${revision}` })
    text.value = JSON.stringify(value, null, 2)
    const message = element('div')
    const store = element('button', { type: 'submit', class: 'primary' }, 'Save')
    return element('form', {
      class: 'editor',
      onsubmit: async event => {
        event.preventDefault()
        let edited
        try { edited = JSON.parse(text.value) } catch (error) {
          return message.replaceChildren(failure(new Error(`This is not JSON: ${error.message}`)))
        }
        store.disabled = true
        try {
          await save(edited)
          text.remove()
          await load()
        } catch (error) { message.replaceChildren(failure(error)) }
        store.disabled = false
      },
    }, text, message, element('div', { class: 'toolbar' }, store, element('button', { type: 'button', onclick: cancel }, 'Cancel')))
  }

  // Conflicts

  const conflictSection = answer => {
    if (answer.conflicts.length === 0) return []
    const bodies = new Map()
    const sides = element('div', { class: 'sides' })
    const side = (revision, index) => {
      const body = element('div', {}, element('p', { class: 'hint' }, 'Loading…'))
      const message = element('div')
      const card = element('article', { class: 'card side' },
        element('h4', {}, short(revision), index === 0 && element('span', { class: 'tag' }, 'current')), body, message)
      get('revision', { collection, id, revision }).then(value => {
        bodies.set(revision, value)
        const showBody = () => {
          body.replaceChildren(tree(value), element('div', { class: 'toolbar' },
            element('button', { type: 'button', class: 'primary keep', onclick: () => settle({ keep: revision }, message) }, 'Keep this one'),
            element('button', {
              type: 'button', class: 'edit',
              onclick: () => body.replaceChildren(editor(value, revision, edited => post('save', { collection, id, keep: revision, body: edited }), showBody)),
            }, 'Edit')))
        }
        showBody()
      }).catch(error => body.replaceChildren(failure(error)))
      return card
    }
    sides.append(...answer.conflicts.map(side))
    return [element('section', { class: 'conflicts' },
      element('h3', {}, `${counted(answer.conflicts.length, 'version')} in conflict`),
      element('p', { class: 'hint' }, 'Keep one, or edit one. The others are given up, here and at every peer.'), sides)]
  }

  const settle = async (change, message) => {
    try {
      await post('save', { collection, id, ...change })
      await load()
    } catch (error) { message.replaceChildren(failure(error)) }
  }

  // The revision tree: newest first, one line a revision, branches side by side.

  const maximumRevisions = 300
  const lineHeight = 30
  const laneWidth = 18

  const revisions = answer => {
    const list = answer.revisions.slice(0, maximumRevisions)
    const places = new Map()
    const lanes = []
    list.forEach((revision, line) => {
      let lane = lanes.indexOf(revision.id)
      if (lane < 0) lane = lanes.indexOf(null) >= 0 ? lanes.indexOf(null) : lanes.length
      places.set(revision.id, { line, lane })
      lanes.forEach((expected, index) => { if (expected === revision.id) lanes[index] = null })
      lanes[lane] = revision.parent
    })
    const width = laneWidth * Math.max(1, lanes.length) + 8
    const x = lane => lane * laneWidth + 12
    const y = line => line * lineHeight + lineHeight / 2
    const drawing = svg('svg', { width, height: list.length * lineHeight, 'aria-hidden': 'true', class: 'lanes' })
    for (const revision of list) {
      const child = places.get(revision.id)
      const parent = places.get(revision.parent)
      if (!parent) continue
      const middle = y(child.line) + lineHeight / 2
      drawing.append(svg('path', {
        class: 'line', d: `M${x(child.lane)} ${y(child.line)} C${x(child.lane)} ${middle + 8} ${x(parent.lane)} ${middle - 8} ${x(parent.lane)} ${Math.min(middle + 14, y(parent.line))} L${x(parent.lane)} ${y(parent.line)}`,
      }))
    }
    for (const revision of list) {
      const { line, lane } = places.get(revision.id)
      const kind = ['deleted', 'closed', 'conflict', 'current', 'candidate'].find(flag => revision.flags.includes(flag)) ?? ''
      drawing.append(svg('circle', { cx: x(lane), cy: y(line), r: 5.5, class: `node ${kind}` }))
    }
    const names = element('ol', { class: 'names' }, list.map(revision => element('li', {},
      element('code', { title: revision.id }, short(revision.id)),
      ...revision.flags.filter(flag => flag !== 'leaf').map(flag => element('span', { class: `tag ${flag === 'conflict' ? 'bad' : ''}` }, flag)),
      revision.copyOf && element('span', { class: 'hint' }, `copy of ${short(revision.copyOf)}`),
      revision.version && element('code', { class: 'hint', title: versions(revision) }, shortVersion(revision.version)),
      !revision.hasBody && element('span', { class: 'hint' }, 'content not kept'))))
    const rest = answer.revisions.length - list.length
    return [element('div', { class: 'revisions' }, drawing, names), rest > 0 && element('p', { class: 'hint' }, `${rest} older ones are not shown`)]
  }

  // All versions that a revision includes.
  const versions = ({ version, merged, previous }) => [
    version, ...merged.map(other => `merged ${other}`), ...previous.map(other => `previous ${other}`),
  ].join('\n')

  // Differences

  const differenceSection = answer => {
    const kept = answer.revisions.filter(revision => revision.hasBody)
    if (kept.length < 2) return element('p', { class: 'hint' }, 'There is nothing to compare: only one revision has its content.')
    const choice = (label, value) => {
      const select = element('select', { 'aria-label': label }, kept.map(revision => element('option', { value: revision.id }, short(revision.id))))
      select.value = value
      return select
    }
    const ids = new Set(kept.map(revision => revision.id))
    const from = choice('from', ids.has(difference.from) ? difference.from : kept[1].id)
    const to = choice('to', ids.has(difference.to) ? difference.to : kept[0].id)
    const result = element('div')
    const compare = async () => {
      difference = { from: from.value, to: to.value }
      try {
        const { changes, isCut } = await get('difference', { collection, id, from: from.value, to: to.value })
        result.replaceChildren(changes.length === 0 ? element('p', { class: 'hint' }, 'The content is the same.') : changesTable(changes), isCut ? element('p', { class: 'hint' }, 'There are more changes.') : '')
      } catch (error) { result.replaceChildren(failure(error)) }
    }
    from.addEventListener('change', compare)
    to.addEventListener('change', compare)
    compare()
    return element('div', { class: 'difference' }, element('h3', {}, 'Difference'), element('div', { class: 'toolbar' }, from, element('span', {}, '→'), to), result)
  }

  const cut = value => {
    const text = JSON.stringify(value)
    return text.length > 300 ? `${text.slice(0, 300)}…` : text
  }
  const changesTable = changes => element('ul', { class: 'changes' }, changes.slice(0, 500).map(change => element('li', {},
    element('code', { class: 'path' }, change.path || '/'),
    'from' in change && element('del', {}, cut(change.from)), 'to' in change && element('ins', {}, cut(change.to)))))

  // Blobs

  const blobSection = answer => {
    if (!answer.blobs?.length) return []
    return [element('section', { class: 'card' }, element('h3', {}, 'Blobs ', element('span', { class: 'hint' }, `${answer.blobs.length}`)),
      element('div', { class: 'gallery' }, answer.blobs.map(blob => blobCard(blob))))]
  }

  load()
  return { changed: throttled(300, load), close: () => { isClosed = true } }
}

export const blobCard = (blob, ...more) => {
  const address = `/api/blob?${parameters({ digest: blob.digest })}`
  const name = blob.type ?? 'no type'
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(blob.type ?? '')
  const picture = element('a', { class: 'picture', href: address, target: '_blank', rel: 'noopener' })
  if (isImage && (blob.length ?? 0) < 16_000_000) {
    picture.append(element('img', {
      src: address, alt: '', loading: 'lazy', onerror: () => picture.replaceChildren('cannot be shown'),
    }))
  } else picture.append(name)
  return element('figure', { class: 'blob' }, picture, element('figcaption', {},
    element('span', {}, blob.length === undefined ? 'size not known' : bytes(blob.length), ' · ', name),
    element('code', { class: 'hint', title: blob.digest }, blob.digest.slice(0, 16)), ...more))
}
