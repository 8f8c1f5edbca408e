import { element, failure, get } from '/common.js'
import { documentsView } from '/documents.js'
import { documentView } from '/document.js'
import { queryView } from '/query.js'
import { blobsView } from '/blobs.js'
import { peersView } from '/peers.js'
import { meshView } from '/mesh.js'

const views = {
  documents: documentsView, document: documentView, query: queryView, blobs: blobsView, peers: peersView, mesh: meshView,
}
const place = document.getElementById('view')
const status = document.getElementById('status')
const banner = document.getElementById('banner')
let current

const show = async () => {
  const [name = 'documents', ...parts] = location.hash.replace(/^#\//, '').split('/').map(part => {
    try { return decodeURIComponent(part) } catch { return part }
  })
  current?.close?.()
  const make = views[name] ?? documentsView
  for (const link of document.querySelectorAll('nav a')) {
    const isCurrent = link.hash === `#/${name === 'document' ? 'documents' : name || 'documents'}`
    link.toggleAttribute('aria-current', isCurrent)
    if (isCurrent) link.setAttribute('aria-current', 'page')
  }
  place.className = `view-${views[name] ? name : 'documents'}`
  current = make(place, parts)
}

window.addEventListener('hashchange', show)
show()

get('database').then(answer => {
  document.getElementById('name').textContent = answer.name
  document.title = `${answer.name} · Loveseat`
}).catch(error => {
  banner.replaceChildren(failure(error))
  banner.hidden = false
})

// One stream for all views.
const events = new EventSource('/api/live')
let wasOpen = false
events.addEventListener('open', () => {
  banner.hidden = true
  // Something may have changed meanwhile.
  if (wasOpen) current?.changed?.()
  wasOpen = true
})
events.addEventListener('error', () => {
  banner.replaceChildren(element('p', {}, 'The connection to the inspector is lost. Trying again…'))
  banner.hidden = false
})
events.addEventListener('changed', () => current?.changed?.())
events.addEventListener('peers', event => {
  const report = JSON.parse(event.data)
  const text = report.isServing ? `open in process ${report.process}` : 'not open elsewhere'
  if (status.textContent !== text) {
    status.textContent = text
    status.className = report.isServing ? 'good' : ''
  }
  current?.peers?.(report)
})
