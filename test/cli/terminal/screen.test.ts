import { EventEmitter } from 'node:events'
import { beforeEach, expect, it } from 'vitest'
import { Screen } from '#src/cli/terminal/screen.js'

class FakeInput extends EventEmitter {
  isTTY = true
  raw = false
  isRead = false
  setRawMode(raw: boolean): void {
    this.raw = raw
  }
  resume(): void {
    this.isRead = true
  }
  pause(): void {
    this.isRead = false
  }
}

class FakeOutput extends EventEmitter {
  columns = 80
  rows = 3
  text = ''
  write(text: string): void {
    this.text += text
  }
}

let input: FakeInput
let output: FakeOutput
let told: string[]
const open = () => {
  const say = (word: string) => () => void told.push(word)
  return new Screen(say('left'), say('resized'), { input, output })
}
beforeEach(() => {
  input = new FakeInput()
  output = new FakeOutput()
  told = []
})

it('a screen takes over the terminal and restores it', () => {
  const screen = open()
  expect(output.text).toBe('\u001b[?1049h\u001b[?25l')
  expect([input.raw, input.isRead]).toEqual([true, true])
  screen.close()
  expect(output.text.endsWith('\u001b[?25h\u001b[?1049l')).toBe(true)
  expect([input.raw, input.isRead]).toEqual([false, false])
  expect([...input.eventNames(), ...output.eventNames()]).toEqual([])
})

it('a screen closes on q and on Ctrl-C, and on no other key', () => {
  open()
  input.emit('data', Buffer.from('x\u001b[A'))
  expect(told).toEqual([])
  input.emit('data', Buffer.from('q'))
  input.emit('data', Buffer.from('\u0003'))
  expect(told).toEqual(['left', 'left'])
})

it('a screen draws over the previous picture, no further than its last row', () => {
  const screen = open()
  output.text = ''
  screen.draw(['a', 'b', 'c', 'd'])
  expect(output.text).toBe('\u001b[Ha\u001b[K\r\nb\u001b[K\r\nc\u001b[K\u001b[J')
})

it('a screen reports a changed size', () => {
  const screen = open()
  Object.assign(output, { columns: 120, rows: 40 })
  output.emit('resize')
  expect([told, screen.columns, screen.rows]).toEqual([['resized'], 120, 40])
})

it('a screen reads no keys if there is no terminal', () => {
  input.isTTY = false
  open().close()
  expect([input.raw, input.isRead]).toEqual([false, false])
})
