// Queries in SQL++.

import { counted, element, empty, failure, get } from '/common.js'

let last = ''

export const queryView = (place, [text]) => {
  let isClosed = false
  const input = element('textarea', {
    rows: 4, spellcheck: 'false', 'aria-label': 'Query', placeholder: "SELECT meta().id, city FROM _ WHERE likes > 3 ORDER BY city LIMIT 20",
  })
  input.value = text ?? last
  const result = element('div', { class: 'result' })
  const button = element('button', { type: 'submit', class: 'primary' }, 'Run')
  const status = element('span', { class: 'hint', role: 'status' }, 'Ctrl+Enter runs the query')
  const run = async event => {
    event?.preventDefault()
    last = input.value
    button.disabled = true
    status.textContent = 'Running…'
    try {
      const answer = await get('query', { sql: input.value })
      if (isClosed) return
      status.textContent = `${counted(answer.rows.length, 'row')}${answer.isCut ? ', and more' : ''} in ${answer.milliseconds} ms`
      result.replaceChildren(answer.rows.length === 0 ? empty('No rows') : table(answer))
    } catch (error) {
      status.textContent = ''
      result.replaceChildren(failure(error))
    }
    button.disabled = false
  }
  const cell = value => {
    if (value === undefined) return element('td')
    const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    const text = kind === 'string' ? value : JSON.stringify(value)
    return element('td', { class: `value ${kind}` }, text.length > 200 ? `${text.slice(0, 200)}…` : text)
  }
  const table = answer => element('div', { class: 'scrolled' }, element('table', {},
    element('thead', {}, element('tr', {}, answer.columns.map(column => element('th', { scope: 'col' }, column)))),
    element('tbody', {}, answer.rows.map(row => element('tr', {}, answer.columns.map(column => cell(row[column])))))))
  input.addEventListener('keydown', event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run(event) })
  place.replaceChildren(element('form', { class: 'card', onsubmit: run }, input, element('div', { class: 'toolbar' }, button, status)), result)
  input.focus()
  return { close: () => { isClosed = true } }
}
