// Parts that every view uses. Text of the database only ever becomes text nodes.

export const element = (tag, properties = {}, ...children) => {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue
    if (name === 'class') made.className = value
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value)
    else if (name === 'value' || name === 'checked' || name === 'disabled') made[name] = value
    else made.setAttribute(name, value === true ? '' : value)
  }
  made.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false))
  return made
}

export const svg = (tag, properties = {}, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value)
    else made.setAttribute(name, value)
  }
  made.append(...children.flat())
  return made
}

export const parameters = values => new URLSearchParams(
  Object.entries(values).filter(([, value]) => value !== undefined && value !== null)
).toString()

const answer = async response => {
  const json = await response.json().catch(() => ({ error: `the inspector answered ${response.status}` }))
  if (!response.ok) throw new Error(json.error ?? `the inspector answered ${response.status}`)
  return json
}

const unreachable = () => {
  throw new Error('the inspector does not answer: is `loveseat` still running?')
}

export const get = (path, values = {}, signal = undefined) =>
  fetch(`/api/${path}?${parameters(values)}`, { signal }).catch(error => {
    if (error.name === 'AbortError') throw error
    return unreachable()
  }).then(answer)

export const post = (path, json) => fetch(`/api/${path}`, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(json)
}).catch(unreachable).then(answer)

export const bytes = count => {
  let value = count
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (value < 1000 || unit === 'GB') return `${unit === 'B' ? value : value.toFixed(1)} ${unit}`
    value /= 1000
  }
}

export const counted = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`

export const duration = milliseconds => {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86400)} d`
}

export const clock = milliseconds => new Date(milliseconds).toLocaleTimeString('en-GB')
export const day = milliseconds => new Date(milliseconds).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })

export const empty = (title, hint) => element('div', { class: 'empty' },
  element('p', {}, title), hint && element('p', { class: 'hint' }, hint))

export const failure = error => element('div', { class: 'failure', role: 'alert' }, error.message)

export const documentLink = (collection, id) =>
  `#/document/${encodeURIComponent(collection)}/${encodeURIComponent(id)}`

export const short = revision => {
  const [generation, digest = ''] = revision.split(/-(.*)/s)
  return `${generation}-${digest.slice(0, 8)}`
}

// A version's time, and the beginning of its source.
export const shortVersion = version => {
  const [time, source = ''] = version.split('@')
  return `${time}@${source.slice(0, 4)}…`
}

// Calls a function when it has not been called for a while, with the last arguments.
export const debounced = (milliseconds, call) => {
  let timer
  return (...values) => {
    clearTimeout(timer)
    timer = setTimeout(() => call(...values), milliseconds)
  }
}

// Calls a function a while after it is called first, and once for all calls meanwhile.
export const throttled = (milliseconds, call) => {
  let timer
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined
      call()
    }, milliseconds)
  }
}
