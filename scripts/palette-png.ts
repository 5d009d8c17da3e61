/** A palette PNG: a picture of a page with at most 256 colours, a quarter as large as the browser's own. */

import { crc32, deflateSync, inflateSync } from 'node:zlib'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const most = 256

interface Pixels {
  readonly width: number
  readonly height: number
  /** Three bytes for each, row by row. */
  readonly rgb: Uint8Array
}

/** Of 8 bits a channel, RGB or RGBA without transparency, as Chromium writes it. Throws an error for any other. */
export function palettePng(png: Buffer): Buffer {
  return encoded(decoded(png))
}

function* chunks(png: Buffer): Generator<{ readonly type: string; readonly data: Buffer }> {
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) }
    at += length + 12
  }
}

function decoded(png: Buffer): Pixels {
  const all = [...chunks(png)]
  const head = all.find(({ type }) => type === 'IHDR')!.data
  const [width, height, depth, colour] = [head.readUInt32BE(0), head.readUInt32BE(4), head[8]!, head[9]!]
  const channels = colour === 2 ? 3 : colour === 6 ? 4 : 0
  if (depth !== 8 || channels === 0) throw new Error(`a picture of ${depth} bits and colour type ${colour} is not read`)
  const raw = inflateSync(Buffer.concat(all.filter(({ type }) => type === 'IDAT').map(({ data }) => data)))
  const stride = width * channels
  const rgb = new Uint8Array(width * height * 3)
  let before: Uint8Array = new Uint8Array(stride)
  for (let y = 0; y < height; y += 1) {
    const from = y * (stride + 1)
    const row = unfiltered(raw[from]!, raw.subarray(from + 1, from + 1 + stride), before, channels)
    for (let x = 0; x < width; x += 1) rgb.set(row.subarray(x * channels, x * channels + 3), (y * width + x) * 3)
    before = row
  }
  return { width, height, rgb }
}

/** A row as it was before its filter: each byte was stored as the difference to its neighbours. */
function unfiltered(filter: number, row: Uint8Array, above: Uint8Array, channels: number): Uint8Array {
  const plain = new Uint8Array(row.length)
  for (let i = 0; i < row.length; i += 1) {
    const left = i < channels ? 0 : plain[i - channels]!
    const corner = i < channels ? 0 : above[i - channels]!
    plain[i] = row[i]! + [0, left, above[i]!, (left + above[i]!) >> 1, paeth(left, above[i]!, corner)][filter]!
  }
  return plain
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)]
  if (a <= b && a <= c) return left
  return b <= c ? above : corner
}

function encoded({ width, height, rgb }: Pixels): Buffer {
  const colours = paletteOf(rgb)
  const known = new Map(colours.map((colour, i) => [colour, i]))
  const rows = Buffer.alloc((width + 1) * height)
  for (let i = 0; i < width * height; i += 1) {
    const colour = colourAt(rgb, i)
    let place = known.get(colour)
    if (place === undefined) {
      place = nearest(colour, colours)
      known.set(colour, place)
    }
    rows[i + Math.floor(i / width) + 1] = place
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  const palette = Buffer.from(colours.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))
  const packed = deflateSync(rows, { level: 9, memLevel: 9 })
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', palette), chunk('IDAT', packed), chunk('IEND')])
}

function colourAt(rgb: Uint8Array, i: number): number {
  return (rgb[3 * i]! << 16) | (rgb[3 * i + 1]! << 8) | rgb[3 * i + 2]!
}

/** The colours that are seen most. */
function paletteOf(rgb: Uint8Array): number[] {
  const counts = new Map<number, number>()
  for (let i = 0; i < rgb.length / 3; i += 1) counts.set(colourAt(rgb, i), (counts.get(colourAt(rgb, i)) ?? 0) + 1)
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([colour]) => colour)
}

function nearest(colour: number, colours: readonly number[]): number {
  const away = (other: number) =>
    ((colour >> 16) - (other >> 16)) ** 2 +
    (((colour >> 8) & 255) - ((other >> 8) & 255)) ** 2 +
    ((colour & 255) - (other & 255)) ** 2
  return colours.reduce((best, other, i) => (away(other) < away(colours[best]!) ? i : best), 0)
}

function chunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
