import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LineChannel, LineCutter } from '#src/runtime/line-channel.js'
import { Tail } from '#src/workers/isolated/child-output.js'

/** Two ends of a connection. */
async function pair(): Promise<[Socket, Socket]> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const here = connect((server.address() as { port: number }).port, '127.0.0.1')
  const [there] = await accepted
  onTestFinished(() => {
    for (const socket of [here, there]) socket.destroy()
    server.close()
  })
  return [here, there]
}

describe('a channel of messages', () => {
  it('passes whole messages on, and drops invalid ones', async () => {
    const [here, there] = await pair()
    const heard: object[] = []
    const channel = new LineChannel(here, (word) => heard.push(word))
    there.write('junk\n{"a":\n\0\nnull\n17\n{"word":"on')
    there.end('e"}\n{"half')
    await channel.closed
    expect(heard).toEqual([{ word: 'one' }])
  })

  it('reports that nobody listens if the other side breaks off, and throws nothing', async () => {
    const [here, there] = await pair()
    const channel = new LineChannel(here, () => {})
    there.resetAndDestroy()
    await channel.closed
    expect(await channel.say({ word: 'nobody hears' })).toBe(false)
    channel.close()
    expect(await channel.say({ word: 'nor this' })).toBe(false)
  })

  it('closes cleanly while messages are on their way', async () => {
    const [here, there] = await pair()
    const channel = new LineChannel(here, () => {})
    there.pause()
    const said = Array.from({ length: 100 }, () => channel.say({ word: 'x'.repeat(100_000) }))
    channel.close()
    await Promise.all(said)
    await channel.closed
  })
})

describe('a line cutter', () => {
  it('joins pieces into lines, and drops a line that is too long, however it arrives', () => {
    const lines = new LineCutter(4)
    const cut = ['ab', 'c\nde', '\n12345', '6789', '0\nfg\n', 'toolong\nhi\n', '\n'].flatMap((piece) =>
      lines.cut(piece),
    )
    expect(cut).toEqual(['abc', 'de', 'fg', 'hi', ''])
  })
})

describe("the tail of a process' output", () => {
  it('ignores lines that its job has forged', () => {
    const tail = new Tail()
    tail.read('null\n5\n"text"\n[]\n{}\njunk\n[null]\n["printed",5]\n["printed",null]\n["printed"]\n["other"]\n')
    tail.read('["printed","well"]\n')
    expect([tail.last, tail.unsent, tail.isLost]).toEqual(['well', 'well', false])
  })
})
