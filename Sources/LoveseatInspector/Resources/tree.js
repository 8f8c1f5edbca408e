// JSON as a tree whose branches open.

import { bytes, element } from '/common.js'

const maximumText = 2000
const pageLength = 200

const isBlob = value => value !== null && typeof value === 'object' && value['@type'] === 'blob'

const scalar = value => {
  const kind = value === null ? 'null' : typeof value
  const text = kind === 'string' ? JSON.stringify(value) : String(value)
  return element('span', { class: `value ${kind}` }, text.length > maximumText ? `${text.slice(0, maximumText)}…` : text)
}

const summary = value => {
  if (Array.isArray(value)) return `[${value.length}]`
  if (isBlob(value)) return `blob${typeof value.length === 'number' ? `, ${bytes(value.length)}` : ''}`
  return `{${Object.keys(value).length}}`
}

const entry = (key, value, depth) => {
  const name = element('span', { class: 'key' }, String(key))
  if (value === null || typeof value !== 'object') {
    return element('li', { class: 'leaf' }, name, ': ', scalar(value))
  }
  const body = element('ul')
  const details = element('details', {}, element('summary', {}, name, ': ', element('span', { class: 'value' }, summary(value))), body)
  const fill = () => {
    if (!details.open || body.childElementCount > 0) return
    more(body, Object.entries(value), 0, depth + 1)
  }
  details.addEventListener('toggle', fill)
  if (depth < 1) {
    details.open = true
    fill()
  }
  return element('li', {}, details)
}

// Long arrays are shown in pieces.
const more = (body, entries, start, depth) => {
  const end = Math.min(start + pageLength, entries.length)
  for (const [key, value] of entries.slice(start, end)) body.append(entry(key, value, depth))
  if (end === entries.length) return
  const button = element('button', {
    type: 'button',
    onclick: () => {
      button.parentElement.remove()
      more(body, entries, end, depth)
    },
  }, `${entries.length - end} more`)
  body.append(element('li', {}, button))
}

export const tree = value => {
  const root = element('ul', { class: 'tree' })
  more(root, Object.entries(value ?? {}), 0, 0)
  return root
}
