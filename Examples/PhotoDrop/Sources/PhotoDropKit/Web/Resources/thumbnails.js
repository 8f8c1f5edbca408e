// Thumbnails: the server's, or made here from the photo itself.

const largestPhoto = 8 << 20
const edge = 320
const waiting = []
let active = 0

/** Fills an element with the picture of a photo; a few at a time, because browsers open only six connections. */
export function showThumbnail(element, photo, asksServer) {
  waiting.push(async () => {
    const picture = (asksServer && await get('/thumb/', photo)) || await make(photo)
    if (!picture) {
      element.textContent = 'No preview'
      return
    }
    const image = new Image()
    image.alt = photo.name
    image.src = URL.createObjectURL(picture)
    try { await image.decode() } catch {
      element.textContent = 'No preview'
      return
    }
    element.replaceChildren(image)
  })
  next()
}

function next() {
  if (active >= 4 || waiting.length === 0) return
  active += 1
  const work = waiting.shift()
  work().catch(() => {}).finally(() => {
    active -= 1
    next()
  })
}

async function get(path, photo) {
  const response = await fetch(path + encodeURIComponent(photo.id))
  return response.ok ? await response.blob() : null
}

async function make(photo) {
  if (photo.size > largestPhoto) return null
  try {
    const bitmap = await createImageBitmap(await get('/photo/', photo), { imageOrientation: 'from-image' })
    const scale = Math.min(1, edge / Math.max(bitmap.width, bitmap.height))
    const canvas = new OffscreenCanvas(
      Math.max(1, Math.round(bitmap.width * scale)),
      Math.max(1, Math.round(bitmap.height * scale))
    )
    canvas.getContext('2d').drawImage(bitmap, 0, 0, canvas.width, canvas.height)
    bitmap.close()
    return await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 })
  } catch {
    return null
  }
}

/** A number of bytes for people. */
export function bytes(count) {
  if (count < 1000) return `${count} B`
  for (const unit of ['kB', 'MB', 'GB', 'TB']) {
    count /= 1000
    if (count < 999.5) return `${count < 9.95 ? count.toFixed(1) : Math.round(count)} ${unit}`
  }
  return `${Math.round(count)} PB`
}

/** A new element with a class and a text. */
export function element(tag, name, text) {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text !== undefined) made.textContent = text
  return made
}
