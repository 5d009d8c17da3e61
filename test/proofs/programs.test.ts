import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const proofs = join(import.meta.dirname, '../../proofs')

/** The programs that a file starts: of crews from the folder of the proofs, of others from its own folder. */
function programsIn(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  const ofCrews = [...text.matchAll(/new Crew\(\s*'([^']+)'/g)].map(([, path]) => join(proofs, path!))
  const others = [...text.matchAll(/join\(import\.meta\.dirname, '([^']+\.[cm]?[jt]s)'/g)]
  return [...ofCrews, ...others.map(([, path]) => join(dirname(file), path!))]
}

describe('the programs that proofs start as processes', () => {
  it('are where the proofs look for them', () => {
    const files = readdirSync(proofs, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    const programs = files.flatMap((file) => programsIn(join(proofs, file)))
    expect(programs.length).toBeGreaterThan(15)
    expect(programs.filter((path) => !existsSync(path))).toEqual([])
  })
})
