/** Middleware: onion order, and what becomes of layers that misbehave. */
import { describe, expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { throughLayers } from '#src/core/task/middleware.js'

type Layer = (next: () => Promise<string>) => Promise<string>

/** A layer that notes its way in and out. */
function noting(name: string, notes: string[]): Layer {
  return async (next) => {
    notes.push(`${name} in`)
    const result = await next()
    notes.push(`${name} out`)
    return `${name}(${result})`
  }
}

describe('throughLayers', () => {
  it('runs the first layer outermost', async () => {
    const notes: string[] = []
    const result = await throughLayers([noting('a', notes), noting('b', notes)], async () => {
      notes.push('core')
      return 'x'
    })

    expect(notes).toEqual(['a in', 'b in', 'core', 'b out', 'a out'])
    expect(result).toBe('a(b(x))')
  })

  it('runs only the core if there are no layers', async () => {
    expect(await throughLayers([], async () => 'x')).toBe('x')
  })

  it('ends at a layer that does not call next', async () => {
    let ran = false
    const result = await throughLayers([async () => 'short'], async () => {
      ran = true
      return 'x'
    })

    expect(result).toBe('short')
    expect(ran).toBe(false)
  })

  it('refuses a second call of next, and runs the inner layers once', async () => {
    let runs = 0
    const twice: Layer = async (next) => (await next()) + (await next())
    const refused = throughLayers([twice], async () => {
      runs += 1
      return 'x'
    })

    await expect(refused).rejects.toThrow(ConfigError)
    await expect(refused).rejects.toThrow(/called next\(\) twice/)
    expect(runs).toBe(1)
  })

  it('can run the same layers for two calls at once', async () => {
    const layers = [noting('a', [])]
    const calls = ['x', 'y'].map((core) => throughLayers(layers, async () => core))

    expect(await Promise.all(calls)).toEqual(['a(x)', 'a(y)'])
  })

  it('lets an outer layer catch what an inner one or the core throws', async () => {
    const catching: Layer = (next) => next().catch((error: Error) => `caught ${error.message}`)
    const failing: Layer = async () => {
      throw new Error('inner')
    }

    expect(await throughLayers([catching, failing], async () => 'x')).toBe('caught inner')
    expect(await throughLayers([catching], () => Promise.reject(new Error('core')))).toBe('caught core')
  })

  it('rejects instead of throwing if a layer or the core throws synchronously', async () => {
    const throwing = () => {
      throw new Error('early')
    }
    const catching: Layer = (next) => next().catch((error: Error) => `caught ${error.message}`)

    await expect(throughLayers([throwing], async () => 'x')).rejects.toThrow('early')
    await expect(throughLayers([], throwing)).rejects.toThrow('early')
    expect(await throughLayers([catching, throwing], async () => 'x')).toBe('caught early')
  })
})
