/** A terminal as a picture: text with the codes of bold, dim and the colours, drawn as SVG. Pure. */

const [cellWidth, lineHeight, margin] = [7.83, 19, 16]
const fills: Readonly<Record<number, string>> = { 31: '#ff7b72', 32: '#7ee787', 33: '#e3b341', 36: '#79c0ff' }

interface Style {
  readonly isBold: boolean
  readonly isDim: boolean
  readonly fill: string
}
const plain: Style = { isBold: false, isDim: false, fill: '#e6edf3' }

/** The style after one code of `ESC [ code m`. */
function after(style: Style, code: number): Style {
  if (code === 1) return { ...style, isBold: true }
  if (code === 2) return { ...style, isDim: true }
  if (code === 22) return { ...style, isBold: false, isDim: false }
  if (code === 39) return { ...style, fill: plain.fill }
  return code === 0 ? plain : { ...style, fill: fills[code] ?? style.fill }
}

const esc = '\x1b'
/** A code, or the space between two words. */
const breaks = new RegExp(`(${esc}\\[[\\d;]*m|\\s+)`)
const codeForm = new RegExp(`^${esc}\\[([\\d;]*)m$`)

const escaped = (text: string) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** The words of a line, each at its own column: a reader's font may have other widths than the terminal's. */
function wordsOf(line: string, y: number): string {
  let style = plain
  let column = 0
  let drawn = ''
  for (const part of line.split(breaks)) {
    const codes = codeForm.exec(part)?.[1]
    if (codes !== undefined) {
      style = codes.split(';').map(Number).reduce(after, style)
      continue
    }
    if (part.trim() !== '') {
      const place = `x="${(margin + column * cellWidth).toFixed(1)}" y="${y}" textLength="${(part.length * cellWidth).toFixed(1)}"`
      const look = `${style.isBold ? ' font-weight="700"' : ''}${style.isDim ? ' opacity="0.6"' : ''}`
      drawn += `<text ${place} fill="${style.fill}"${look}>${escaped(part)}</text>\n`
    }
    column += part.length
  }
  return drawn
}

/** An SVG of these lines, `columns` wide. `title` is what a screen reader says. */
export function terminalSvg(lines: readonly string[], columns: number, title: string): string {
  const width = Math.ceil(columns * cellWidth + 2 * margin)
  const height = lines.length * lineHeight + 2 * margin
  const drawn = lines.map((line, i) => wordsOf(line, margin + (i + 0.75) * lineHeight)).join('')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
<title>${escaped(title)}</title>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${drawn}</svg>
`
}
