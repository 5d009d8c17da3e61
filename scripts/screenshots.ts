/**
 * The screenshots of a shop at work: every page at the width of a phone, a tablet and a desk, in light and in dark, and `stats --watch`.
 * `npm run screenshots` writes them anew; another folder than docs/images/window may be given.
 */

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { PageBrowser } from '../test/page/page-browser.js'
import { PageHand } from '../test/page/page-hand.js'
import { places } from '../test/page/page-places.js'
import { PageScene } from '../test/page/page-scene.js'
import { otherWorkers, shopAtWork, shopLife } from '../test/page/shop-life.js'
import { sendMail } from '../test/page/shop-tasks.js'
import { palettePng } from './palette-png.js'
import { terminalSvg } from './terminal-svg.js'

const sizes = [
  [375, 812],
  [768, 1_024],
  [1_440, 900],
] as const
const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../docs/images/window'))
mkdirSync(folder, { recursive: true })

const scene = await PageScene.on('sqlite')
const endWork = await shopLife(scene, { hasPast: true })
const livesSince = performance.now()
const url = await scene.window()
writeFileSync(join(folder, 'stats-watch.svg'), watchedStats())
const browser = await PageBrowser.launch()
let bytes = 0
const { overview, ...standing } = places
await takePictures(standing, () => otherWorkers(scene))
const closeShop = await shopAtWork(scene, { minutes: 2.5, stoodMs: performance.now() - livesSince })
await takePictures({ overview }, async () => {})
console.log(`${Object.keys(places).length * sizes.length * 2} pictures, ${(bytes / 1e6).toFixed(2)} MB`)
await browser.close()
await closeShop()
await endWork()
await scene.close()

/** `prepared` is called before each picture. */
async function takePictures(of: Readonly<Record<string, string>>, prepared: () => Promise<void>): Promise<void> {
  for (const [width, height] of sizes)
    for (const scheme of ['light', 'dark'] as const)
      for (const [name, place] of Object.entries(of)) {
        await prepared()
        const { page } = await browser.tab({ width, height, scheme })
        await PageHand.at(page, url + place)
        if (name === 'events') await someMail()
        // Until the curves are drawn.
        await page.waitForTimeout(300)
        const picture = palettePng(await page.screenshot({ animations: 'disabled', caret: 'hide' }))
        writeFileSync(join(folder, `${name}-${width}-${scheme}.png`), picture)
        bytes += picture.length
        const faults = await browser.closeTabs()
        if (faults.length > 0) throw new Error(`${name} at ${width} px, ${scheme}: ${faults.join('; ')}`)
      }
}

/** For who watches what happens in the queue. */
async function someMail(): Promise<void> {
  const worker = scene.mill.worker({ queues: ['mail'] })
  await worker.start()
  for (const name of ['ada', 'grace', 'edsger', 'barbara', 'donald', 'tony'])
    await (await scene.mill.enqueue(sendMail, { to: `${name}@example.com`, subject: 'Your order' })).result()
  await worker.stop()
}

/** What `stats --watch` has on the screen of a terminal, until it is ended. */
function watchedStats(): string {
  const [columns, command] = [104, join(import.meta.dirname, '../dist/cli/main.js')]
  const line = `stty cols ${columns} rows 40; timeout 3 ${process.execPath} ${command} stats --watch --config ${import.meta.dirname}/shop.config.ts`
  const { stdout } = spawnSync('script', ['-qec', line, '/dev/null'], {
    encoding: 'utf8',
    env: { ...process.env, MILLRACE_STORE: scene.url, FORCE_COLOR: '1' },
  })
  const screen = stdout.split('\x1b[H').at(-1)!.split('\x1b[J')[0]!
  const lines = screen.split(/\r*\n/).map((text) => nameStore(text.replaceAll('\x1b[K', '')))
  return terminalSvg(lines, columns, 'millrace stats --watch')
}

/** The first line names the store at its left and the time at its right. */
function nameStore(text: string): string {
  const name = 'sqlite:jobs.db'
  return text.includes(scene.url)
    ? text.replace(scene.url, name).replace(/(?=\d\d:\d\d:\d\d$)/, ' '.repeat(scene.url.length - name.length))
    : text
}
