import { bytes, element, showThumbnail } from '/thumbnails.js'

const find = id => document.getElementById(id)
const rows = new Map()
let isSending = false
let hasEnded = false
let needsCode = false

const events = new EventSource('/events')
const on = (name, handle) => events.addEventListener(name, event => handle(JSON.parse(event.data)))

on('hello', hello => {
  for (const photo of hello.photos) {
    if (rows.has(photo.id)) continue
    const row = card(photo)
    rows.set(photo.id, row)
    find('gallery').append(row.label)
  }
  needsCode = hello.needsCode ?? false
  find('enter').hidden = !needsCode
  update(title(hello))
})

on('code', code => {
  needsCode = false
  find('enter').hidden = true
  find('banner').hidden = true
  update(title(code))
})

find('enter').addEventListener('submit', async event => {
  event.preventDefault()
  const response = await fetch('/code', { method: 'POST', body: find('code').value })
  if (response.ok) return
  find('banner').hidden = false
  find('banner').textContent = await response.text()
})

on('progress', photo => {
  const row = rows.get(photo.id)
  if (!row) return
  row.state = photo.state
  const texts = {
    queued: 'Waiting',
    sending: `${bytes(photo.sent)} of ${bytes(photo.size)}`,
    stored: 'Sent',
    failed: photo.error
  }
  row.detail.textContent = texts[photo.state] ?? photo.state
  row.detail.className = `detail ${photo.state}`
  row.bar.hidden = photo.state !== 'sending'
  row.bar.max = Math.max(1, photo.size)
  row.bar.value = photo.sent
  if (photo.state === 'stored') row.box.checked = false
  row.box.disabled = photo.state === 'stored' || photo.state === 'sending'
  update()
})

on('state', state => {
  if (state.event === 'waiting') update('The connection is lost. Trying again…')
  if (state.event === 'done') update(`${state.stored} photos, ${bytes(state.bytes)} in ${state.seconds.toFixed(1)} s`)
})

on('idle', ({ error }) => {
  isSending = false
  find('banner').hidden = !error
  find('banner').textContent = error ?? ''
  update()
})

events.addEventListener('error', () => {
  if (!hasEnded) update('The connection to photodrop is lost. Trying again…')
})

find('send').addEventListener('click', async () => {
  const ids = [...rows.keys()].filter(id => rows.get(id).box.checked)
  isSending = true
  find('banner').hidden = true
  update('Sending…')
  const response = await fetch('/send', { method: 'POST', body: JSON.stringify(ids) })
  if (response.ok) return
  isSending = false
  find('banner').hidden = false
  find('banner').textContent = await response.text()
  update()
})

find('all').addEventListener('click', () => {
  for (const row of rows.values()) if (!row.box.disabled) row.box.checked = true
  update()
})

find('stop').addEventListener('click', async () => {
  await fetch('/stop', { method: 'POST' })
  hasEnded = true
  events.close()
  update('Finished. You can close this page.')
})

function title({ receiver }) {
  if (needsCode) return 'Choose photos, and enter the code'
  return receiver ? `Choose photos for ${receiver}` : 'Choose photos'
}

function card(photo) {
  const label = element('label', 'photo')
  const box = element('input')
  box.type = 'checkbox'
  box.value = photo.id
  box.addEventListener('change', () => update())
  const picture = element('span', 'picture', 'Loading…')
  const caption = element('span', 'caption')
  const name = element('span', 'name', photo.name)
  const detail = element('span', 'detail', bytes(photo.size))
  const bar = element('progress')
  bar.hidden = true
  caption.append(name, detail, bar)
  // The first control in a label is the one that it belongs to, and the bar is a control, too.
  label.append(box, picture, caption)
  showThumbnail(picture, photo, false)
  return { label, box, detail, bar, state: 'new' }
}

function update(status) {
  if (status) find('status').textContent = status
  const chosen = [...rows.values()].filter(row => row.box.checked).length
  find('send').disabled = isSending || hasEnded || needsCode || chosen === 0
  find('send').textContent = chosen === 0 ? 'Send' : `Send ${chosen}`
}
