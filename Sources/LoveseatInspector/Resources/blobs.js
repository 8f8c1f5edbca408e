// All blobs, the largest ones first, and the documents that refer to them.

import { counted, documentLink, element, empty, failure, get, throttled } from '/common.js'
import { blobCard } from '/document.js'

const pageLength = 60

export const blobsView = place => {
  let isClosed = false
  let last
  const summary = element('p', { class: 'hint', role: 'status' }, 'Loading…')
  const gallery = element('div', { class: 'gallery' })
  const rest = element('div')
  place.replaceChildren(element('div', { class: 'toolbar' }, element('h2', {}, 'Blobs'), summary), gallery, rest)
  const load = async offset => {
    try {
      const answer = await get('blobs', { offset, limit: pageLength })
      if (isClosed || (offset === 0 && JSON.stringify(answer) === last)) return
      if (offset === 0) last = JSON.stringify(answer)
      summary.textContent = `${counted(answer.count, 'blob')}${answer.isCut ? ', and more' : ''}`
      const cards = answer.blobs.map(blob => blobCard(blob, element('span', { class: 'referrers' },
        ...blob.referrers.slice(0, 3).map(([collection, id]) => element('a', { href: documentLink(collection, id), title: `${collection}/${id}` }, id)),
        blob.references > 3 && element('span', { class: 'hint' }, `and ${blob.references - 3} more`))))
      if (offset === 0) gallery.replaceChildren(...cards)
      else gallery.append(...cards)
      const shown = gallery.childElementCount
      rest.replaceChildren(answer.count === 0
        ? empty('No document refers to a blob', 'Blobs are files that documents refer to, such as photos.')
        : shown < answer.count ? element('button', { type: 'button', onclick: () => load(shown) }, 'Show more') : '')
    } catch (error) { rest.replaceChildren(failure(error)) }
  }
  load(0)
  return { changed: throttled(1000, () => load(0)), close: () => { isClosed = true } }
}
