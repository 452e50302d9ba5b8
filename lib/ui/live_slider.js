const PACE_MS = 60
const PATIENCE_MS = 800
const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

const tidy = (x) => Number(x.toPrecision(12))

class LiveSlider {
  constructor(root) {
    this.root = root
    this.range = root.querySelector('#range')
    this.exact = root.querySelector('#exact')
    this.value = null
    this.revision = null
    this.sequence = 0
    this.sentAt = 0
    this.drawn = true
    this.timer = null
    this.held = false
    this.unshared = false
    this.listen()
  }

  part(name) {
    return this.root.querySelector(`.${name}`)
  }

  listen() {
    const { range, exact } = this
    range.addEventListener('pointerdown', () => { this.held = true })
    range.addEventListener('input', () => this.move(this.chosen(Number(range.value))))
    range.addEventListener('keydown', (event) => this.key(event))
    range.addEventListener('keyup', () => this.release())
    for (const over of ['change', 'pointerup', 'pointercancel', 'blur']) {
      range.addEventListener(over, () => this.release())
    }
    // A click on the very middle of an empty track moves nothing, yet it chooses that value.
    range.addEventListener('click', () => {
      if (this.value === null) {
        this.move(this.chosen(Number(range.value)))
        this.release()
      }
    })
    exact.addEventListener('focus', () => exact.select())
    exact.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.commit()
      if (event.key === 'Escape') this.draw()
    })
    exact.addEventListener('blur', () => this.commit())
    this.part('clear').addEventListener('click', () => {
      this.set(null)
      this.release()
      range.focus()
    })
    this.part('why').addEventListener('click', (event) => {
      const help = this.part('help')
      help.hidden = !help.hidden
      event.currentTarget.setAttribute('aria-expanded', String(!help.hidden))
    })
  }

  update(data, send) {
    const first = this.revision === null
    this.data = data
    this.send = send
    this.describe()
    if (first) this.sequence = data.sequence
    if (first || (data.revision !== this.revision && !this.held)) {
      this.value = data.value
      this.sent = data.value
      this.draw()
    }
    this.revision = data.revision
    if (data.sequence >= this.sequence && !this.drawn) {
      this.drawn = true
      if (this.timer !== null) this.schedule()
    }
  }

  describe() {
    const { data, range, exact } = this
    const shown = (x) => this.text(x)
    this.part('name').textContent = data.label
    this.part('unit').textContent = data.unit
    this.part('min').textContent = shown(data.min)
    this.part('max').textContent = shown(data.max)
    this.part('help').textContent = data.help
    this.part('why').setAttribute('aria-label', `About ${data.label}`)
    this.part('clear').setAttribute('aria-label', `Clear ${data.label}`)
    exact.setAttribute('aria-label', `${data.label}, exact value`)
    range.min = this.place(data.min)
    range.max = this.place(data.max)
  }

  text(x) {
    return x === null ? '' : String(tidy(x * this.data.scale))
  }

  // Where a value stands on the slider, and back, rounded to what a drag may choose.
  place(x) {
    return this.data.curve === 'log' ? Math.log10(x) : x
  }

  chosen(place) {
    const { min, max, step, curve } = this.data
    const x = curve === 'log' ? Number((10 ** place).toPrecision(2)) : place
    return Math.min(max, Math.max(min, tidy(Math.round(x / step) * step)))
  }

  moved(steps) {
    const { step, curve } = this.data
    const from = this.value ?? this.middle()
    if (curve === 'log') return this.chosen(this.place(from) + steps * 0.05)
    return this.chosen(from + steps * step)
  }

  middle() {
    const { min, max } = this.data
    return this.chosen((this.place(min) + this.place(max)) / 2)
  }

  draw() {
    const { data, range, exact, root, value } = this
    const empty = value === null
    range.value = this.place(empty ? this.middle() : value)
    root.style.setProperty('--at', (range.value - range.min) / (range.max - range.min))
    root.classList.toggle('empty', empty)
    range.setAttribute('aria-valuetext', empty ? `empty, ${data.empty}` : `${this.text(value)} ${data.unit}`.trim())
    exact.value = this.text(value)
    this.part('clear').hidden = empty || data.start !== null
    this.say(empty ? data.empty : '', false)
  }

  say(message, wrong) {
    this.part('say').textContent = message
    this.root.classList.toggle('wrong', wrong)
    this.exact.setAttribute('aria-invalid', String(wrong))
  }

  key(event) {
    let to = null
    if (event.key in STEPS) to = this.moved(STEPS[event.key])
    if (event.key === 'Home') to = this.data.min
    if (event.key === 'End') to = this.data.max
    if (to === null) return
    event.preventDefault()
    this.move(to)
  }

  move(x) {
    this.set(x)
    this.schedule()
  }

  set(x) {
    if (x !== this.value) this.unshared = true
    this.value = x
    this.draw()
  }

  release() {
    this.held = false
    if (!this.unshared) return
    this.unshared = false
    clearTimeout(this.timer)
    this.timer = null
    this.share()
    this.deliver(true)
  }

  commit() {
    const typed = this.exact.value.trim()
    if (typed === this.text(this.value)) {
      this.draw()
      return
    }
    if (typed === '' && this.data.start === null) {
      this.set(null)
      this.release()
      return
    }
    const read = this.read(typed)
    if (read.problem) {
      this.say(read.problem, true)
      return
    }
    this.set(read.value)
    this.release()
  }

  read(typed) {
    const { data } = this
    const bare = typed.replace(/^\$\s*/, '').replace(/\s*(%|(\/|per)\s*(GPU[- ]?)?h(our|r)?)$/i, '')
    const percent = data.kind === 'fraction' && /%$/.test(typed)
    if (!NUMBER.test(bare)) return { problem: `a number like ${this.text(this.middle())}` }
    const value = tidy(Number(bare) / (percent ? 100 : data.scale))
    const whole = data.kind !== 'integer' || Number.isInteger(value)
    if (whole && value >= data.min && value <= data.max) return { value }
    const meant = data.kind === 'fraction' && !percent && value > 1 && value <= 100
    return { problem: meant ? `${bare} %? Type ${tidy(value / 100)}` : `allowed: ${data.allowed}` }
  }

  schedule() {
    clearTimeout(this.timer)
    const pause = this.drawn ? PACE_MS : PATIENCE_MS
    const wait = Math.max(0, this.sentAt + pause - performance.now())
    this.timer = setTimeout(() => {
      this.timer = null
      if (this.value !== this.sent) this.deliver(false)
    }, wait)
  }

  deliver(final) {
    this.sent = this.value
    this.sequence += 1
    this.sentAt = performance.now()
    this.drawn = false
    this.send('sent', { value: this.value, sequence: this.sequence, final })
  }

  // Replaced rather than pushed, so that Back leaves the page instead of undoing drags.
  share() {
    const { key, start } = this.data
    const query = new URLSearchParams(location.search)
    if (this.value === null || this.value === start) query.delete(key)
    else query.set(key, String(this.value))
    const search = query.toString()
    history.replaceState(history.state, '', location.pathname + (search ? `?${search}` : '') + location.hash)
  }

  stop() {
    clearTimeout(this.timer)
  }
}

const views = new WeakMap()

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector('.live')
  if (!views.has(root)) views.set(root, new LiveSlider(root))
  const view = views.get(root)
  view.update(data, setStateValue)
  return () => view.stop()
}
