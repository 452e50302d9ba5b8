const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false }

let loading = null

function load(library) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = new URL(`./${library}`, document.baseURI)
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => {
      loading = null
      reject(new Error(`${library} did not load`))
    }
    document.head.append(script)
  })
  return loading
}

// When the browser is idle, so that pointer and numbers never wait for figures, yet soon.
const PATIENCE_MS = 120
const whenIdle = (draw) =>
  window.requestIdleCallback ? requestIdleCallback(draw, { timeout: PATIENCE_MS }) : setTimeout(draw)

class Figure {
  constructor(box, title) {
    this.box = box
    this.title = title
    this.drawn = null
    this.waiting = false
    this.observer = new ResizeObserver(() => {
      if (this.drawn !== null && box.clientWidth > 0) window.Plotly.Plots.resize(box)
    })
    this.observer.observe(box)
  }

  update({ spec, height, alt, title, library }) {
    const { box } = this
    this.spec = spec
    this.title.textContent = title
    this.title.hidden = !title
    box.style.height = `${height}px`
    box.setAttribute('role', 'figure')
    box.setAttribute('aria-label', alt)
    if (spec === this.drawn || this.waiting) return
    this.waiting = true
    load(library).then(() => whenIdle(() => this.draw()), () => { this.waiting = false })
  }

  draw() {
    this.waiting = false
    const { box, spec } = this
    if (!box.isConnected) return
    const { data, layout } = JSON.parse(spec)
    layout.font = { ...layout.font, family: getComputedStyle(box).fontFamily }
    layout.autosize = true
    this.drawn = spec
    window.Plotly.react(box, data, layout, CONFIG)
  }

  stop() {
    this.observer.disconnect()
    if (this.drawn !== null) window.Plotly.purge(this.box)
  }
}

const figures = new WeakMap()

export default function ({ data, parentElement }) {
  const box = parentElement.querySelector('.figure')
  if (!figures.has(box)) {
    figures.set(box, new Figure(box, parentElement.querySelector('.figure-title')))
  }
  const figure = figures.get(box)
  figure.update(data)
  return () => figure.stop()
}
