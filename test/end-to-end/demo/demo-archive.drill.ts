import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { Archive, isNameable } from '../../../examples/demo/archive.js'
import { unpack, verdictOn } from '../../../examples/demo/pack-verdict.js'
import { type Tree, treeOf } from '../../../examples/demo/tree.js'
import { CommandProcess } from '../../cli/command-process.js'
import { project, root } from '../../cli/project.js'

const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')

/** Three members of an archive. */
const manyFiles = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`file ${n}`, `${n}`.repeat(n)]))

/** A folder with these files, and the tree of them. */
async function treeWith(
  files: Readonly<Record<string, string>>,
): Promise<{ home: string; tree: Tree; paths: string[] }> {
  const home = project({})
  const folder = join(home, 'tree')
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const paths = Object.keys(files)
  const tree = await treeOf(
    folder,
    paths.map((path) => join(folder, path)),
  )
  return { home, tree, paths }
}

async function packed(archive: string, folder: string, paths: readonly string[]): Promise<void> {
  const out = await Archive.open(archive, 0)
  expect(await out.add(folder, paths)).toBe(paths.length)
  await out.end()
  await out.close()
}

describe('the archive of the demo', () => {
  it('is unpacked by tar as it was packed, with long names and empty files', async () => {
    const long = `${'d'.repeat(90)}/${'é'.repeat(30)}/${'f'.repeat(98)}`
    const { home, tree, paths } = await treeWith({
      'a.txt': 'a',
      empty: '',
      'block of 512': 'x'.repeat(512),
      'deep/er/ü "quoted"\n.txt': 'ü'.repeat(1_000),
      [long]: 'long',
    })
    expect(tree.checksums.size).toBe(5)
    await packed(join(home, 'archive.tar.gz'), tree.folder, paths)
    const entries = await unpack(join(home, 'archive.tar.gz'), join(home, 'out'))
    expect(await verdictOn(tree, join(home, 'out'), entries)).toEqual({ problems: [], changed: 0 })
    const [before, after] = [join(tree.folder, 'a.txt'), join(home, 'out', 'a.txt')].map(
      (file) => statSync(file).mtimeMs,
    )
    expect(after).toBe(Math.floor(before! / 1_000) * 1_000)
  })

  it('refuses names that are longer than a tar file allows', () => {
    expect(isNameable('x'.repeat(100))).toBe(true)
    expect(isNameable('x'.repeat(101))).toBe(false)
    expect(isNameable(`${'p'.repeat(155)}/${'x'.repeat(100)}`)).toBe(true)
    expect(isNameable(`${'p'.repeat(156)}/${'x'.repeat(100)}`)).toBe(false)
    expect(isNameable(`p/${'x'.repeat(101)}`)).toBe(false)
    expect(isNameable(`${'é'.repeat(51)}`)).toBe(false)
  })

  it('continues at the end of a member, whatever was written behind it, and leaves out deleted files', async () => {
    const { home, tree, paths } = await treeWith(manyFiles)
    const archive = join(home, 'archive.tar.gz')
    const first = await Archive.open(archive, 0)
    const done = await first.add(tree.folder, paths)
    expect(done).toBe(128)
    const checkpoint = first.bytes
    await first.add(tree.folder, paths.slice(done))
    await first.close()
    appendFileSync(archive, 'half a member'.repeat(10_000))
    rmSync(join(tree.folder, 'file 299'))

    const second = await Archive.open(archive, checkpoint)
    expect(await second.add(tree.folder, paths.slice(done))).toBe(128)
    expect(await second.add(tree.folder, paths.slice(done + 128))).toBe(300 - 2 * 128)
    await second.end()
    await second.close()
    const entries = await unpack(archive, join(home, 'out'))
    expect(await verdictOn(tree, join(home, 'out'), entries)).toEqual({ problems: [], changed: 1 })
    expect(readdirSync(join(home, 'out'))).toHaveLength(299)
  })
})

describe('the verdict on an archive', () => {
  it('finds a missing file, a different one and one that was never packed, and excuses one that has changed since', async () => {
    const { home, tree } = await treeWith({ same: '1', missing: '2', other: '3', 'deep/changed': '4' })
    const out = join(home, 'out')
    mkdirSync(join(out, 'deep'), { recursive: true })
    for (const [path, text] of [
      ['same', '1'],
      ['other', '2'],
      ['deep/changed', 'anything'],
      ['deep/more', ''],
    ] as const)
      writeFileSync(join(out, path), text)
    writeFileSync(join(tree.folder, 'deep/changed'), 'changed')
    expect(await verdictOn(tree, out, 4)).toEqual({
      problems: [
        'deep/more: a file that nobody packed',
        'missing: is missing in the archive',
        'other: is another file in the archive',
      ],
      changed: 1,
    })
  })

  it('finds a file that was packed twice', async () => {
    const { home, tree } = await treeWith({ once: '1', twice: '2' })
    await packed(join(home, 'archive.tar.gz'), tree.folder, ['once', 'twice', 'twice'])
    const entries = await unpack(join(home, 'archive.tar.gz'), join(home, 'out'))
    expect(await verdictOn(tree, join(home, 'out'), entries)).toEqual({
      problems: ['3 entries in the archive for 2 files'],
      changed: 0,
    })
  })

  it('comes from tar if the archive is cut off', async () => {
    const { home, tree, paths } = await treeWith({ a: 'a'.repeat(5_000) })
    const archive = join(home, 'archive.tar.gz')
    await packed(archive, tree.folder, paths)
    writeFileSync(archive, readFileSync(archive).subarray(0, 60))
    await expect(unpack(archive, join(home, 'out'))).rejects.toThrow(/tar/)
  })
})

/** The part alone, which says what is left of its job where it fails. */
const alone = (folder: string) => `
import { filesOf } from ${JSON.stringify(join(root, 'examples/demo/files.ts'))}
import { packPart } from ${JSON.stringify(join(root, 'examples/demo/pack-part.ts'))}
import { Place } from ${JSON.stringify(join(root, 'examples/demo/place.ts'))}
import { treeOf } from ${JSON.stringify(join(root, 'examples/demo/tree.ts'))}

const place = await Place.open()
try {
  const { paths } = await filesOf(${JSON.stringify(folder)}, 1_000)
  await packPart(place, await treeOf(${JSON.stringify(folder)}, paths))
} catch (error) {
  const { jobs } = await place.mill.queue('archive').jobs.list({})
  console.log(error.message, jobs.map(({ state }) => state))
}
await place.close(false)
process.exit()
`

/** Runs it until its job has a process. */
async function begun(): Promise<{ demo: CommandProcess; home: string }> {
  const { home, tree } = await treeWith(manyFiles)
  const temporary = join(home, 'tmp')
  mkdirSync(temporary)
  writeFileSync(join(home, 'alone.ts'), alone(tree.folder))
  const env = { TMPDIR: temporary }
  const demo = new CommandProcess([join(home, 'alone.ts')], { cwd: home, script, env })
  await demo.stdoutMatches(/by process \d+/)
  return { demo, home: temporary }
}

/** The processes that were started with this folder for their temporary files. */
function livingWith(home: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`TMPDIR=${home}`)
    } catch {
      return false
    }
  })
}

function noneLives(home: string): Promise<true> {
  const ask = async () => (livingWith(home).length === 0 ? (true as const) : undefined)
  return poll(ask, { what: 'no process is left', withinMs: 60_000 })
}

describe('the archive part of the demo', { timeout: 90_000 }, () => {
  it('cancels its job when it is interrupted, and no process outlives it', async () => {
    const { demo, home } = await begun()
    expect(livingWith(home).length).toBeGreaterThanOrEqual(4)
    demo.kill('SIGINT')
    const { stdout, stderr } = await demo.end()
    expect(stderr).toBe('')
    expect(stdout).toMatch(/interrupted by SIGINT \[(?: 'cancelled' )?\]/)
    await noneLives(home)
    expect(readdirSync(home).filter((name) => name.startsWith('millrace-demo-'))).toEqual([])
  })

  it('leaves its process to its end when it is killed, and that comes soon', async () => {
    const { demo, home } = await begun()
    demo.kill('SIGKILL')
    await demo.ended
    await noneLives(home)
  })
})
