import { bytes, element, showThumbnail } from '/thumbnails.js'

const find = id => document.getElementById(id)
const photos = new Map()
const senders = new Map()
const failures = new Map()
const partial = new Map()

fetch('/code').then(response => response.text()).then(text => {
  find('text').textContent = `'${text}' FILES…`
  find('copy').addEventListener('click', async () => {
    await navigator.clipboard.writeText(text)
    find('copy').textContent = 'Copied'
    setTimeout(() => { find('copy').textContent = 'Copy the code' }, 2000)
  })
})
find('stop').addEventListener('click', () => fetch('/stop', { method: 'POST' }))

const events = new EventSource('/events')
const on = (name, handle) => events.addEventListener(name, event => handle(JSON.parse(event.data)))
let hasEnded = false
let deletesFiles = false

events.addEventListener('open', update)
events.addEventListener('error', () => {
  if (!hasEnded) find('status').textContent = 'The connection to photodrop is lost. Trying again…'
})

on('hello', hello => {
  find('folder').textContent = hello.folder
  deletesFiles = hello.deletesFiles ?? false
  if (hello.name) document.title = `PhotoDrop: ${hello.name}`
  update()
})

on('photo', photo => {
  failures.delete(photo.id)
  partial.delete(photo.id)
  if (photos.has(photo.id)) return
  photos.set(photo.id, card(photo))
  find('gallery').prepend(photos.get(photo.id))
  update()
})

on('gone', ({ id }) => {
  photos.get(id)?.remove()
  photos.delete(id)
  failures.delete(id)
  update()
})

on('failed', failed => {
  failures.set(failed.id, failed)
  update()
})

on('progress', ({ photo, sent }) => {
  if (!photos.has(photo)) partial.set(photo, sent)
  for (const sender of senders.values()) if (photo.endsWith(sender.id)) show(sender)
})

on('sender', sender => {
  senders.set(sender.id, sender)
  show(sender)
  update()
})

on('end', ({ reason }) => {
  hasEnded = true
  events.close()
  find('status').textContent = `The session has ended: ${reason}.`
  find('code').hidden = true
  find('stop').disabled = true
})

function card(photo) {
  const figure = element('figure', 'photo')
  const link = element('a', 'picture', 'Loading…')
  link.href = `/photo/${encodeURIComponent(photo.id)}`
  link.target = '_blank'
  link.rel = 'noreferrer'
  const caption = element('figcaption')
  const name = element('span', 'name', photo.name)
  name.title = photo.name
  const size = photo.width ? `${photo.width} × ${photo.height} · ${bytes(photo.size)}` : bytes(photo.size)
  caption.append(name, element('span', 'detail', photo.duplicate ? `${size} · already there` : size))
  const forget = element('button', 'forget', '×')
  forget.type = 'button'
  forget.title = deletesFiles ? 'Remove, and move the file to the trash' : 'Remove from this page; the file stays'
  forget.ariaLabel = `Remove ${photo.name} from this page`
  forget.addEventListener('click', async () => {
    const response = await fetch(`/forget/${encodeURIComponent(photo.id)}`, { method: 'POST' })
    if (response.ok) return
    failures.set(photo.id, { id: photo.id, name: photo.name, error: await response.text() })
    update()
  })
  figure.append(link, caption, forget)
  showThumbnail(link, photo, true)
  return figure
}

function show(sender) {
  let row = document.getElementById(`sender-${sender.id}`)
  if (!row) {
    row = element('li')
    row.id = `sender-${sender.id}`
    row.append(element('span', 'who'), element('span', 'state'), element('progress'))
    find('senders').append(row)
    find('senders-section').hidden = false
  }
  const [who, state, bar] = row.children
  who.textContent = sender.name ? `says it is ${sender.name}` : `sender ${sender.id.slice(0, 6)}`
  const words = { sending: 'sending', away: 'away', done: 'done' }
  state.textContent = `${sender.received} of ${sender.count} · ${words[sender.state] ?? sender.state}`
  state.classList.toggle('done', sender.state === 'done')
  let arrived = sender.receivedBytes
  for (const [photo, sent] of partial) if (photo.endsWith(sender.id)) arrived += sent
  bar.max = Math.max(1, sender.bytes)
  bar.value = sender.state === 'done' ? bar.max : Math.min(arrived, bar.max)
}

function update() {
  find('count').textContent = photos.size
  find('empty').hidden = photos.size > 0
  const failed = [...failures.values()]
  find('banner').hidden = failed.length === 0
  find('banner').textContent = failed.length === 0 ? '' : failed.length === 1
    ? `${failed[0].name} is not saved: ${failed[0].error}. It will be tried again.`
    : `${failed.length} photos are not saved: ${failed[0].error}. They will be tried again.`
  if (hasEnded) return
  const busy = [...senders.values()].filter(sender => sender.state === 'sending').length
  find('status').textContent = busy === 0 ? 'Ready' : busy === 1 ? '1 device is sending' : `${busy} devices are sending`
}
