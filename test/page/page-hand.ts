/** A page hand: presses, picks, types and confirms as somebody at the page does. */

import type { Page } from 'playwright-core'

export class PageHand {
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  /** Opens the address, and waits until nothing on the page waits for its data. */
  static async at(page: Page, address: string): Promise<PageHand> {
    await page.goto(address)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.locator('.waiting').first().waitFor({ state: 'detached' })
    return new PageHand(page)
  }

  press(name: string): Promise<void> {
    return this.page.getByRole('button', { name, exact: true }).click()
  }

  /** An item of a menu; `menu`: the name of its button. */
  async pick(menu: string | RegExp, item: string | RegExp): Promise<void> {
    await this.page.getByRole('button', { name: menu }).click()
    await this.page.getByRole('menuitem', { name: item }).click()
  }

  /** A field of the dialog that is open, or else of the page. */
  async fill(label: string, text: string): Promise<void> {
    const dialog = this.page.getByRole('dialog')
    const place = (await dialog.count()) > 0 ? dialog.last() : this.page
    // A part of the page behind a dialog that is about to open may have the same label.
    await place.getByLabel(label, { exact: true }).and(this.page.locator('input, textarea')).fill(text)
  }

  /** Chooses rows by what their boxes are called. */
  async choose(...names: readonly string[]): Promise<void> {
    for (const name of names) await this.page.getByRole('checkbox', { name, exact: true }).check()
  }

  /** Presses the button of the dialog that is on top; `typed`: what has to be typed before. */
  async confirm(verb: string, typed?: string): Promise<void> {
    const dialog = this.page.getByRole('dialog').last()
    const button = dialog.getByRole('button', { name: verb, exact: true })
    if (typed !== undefined) {
      if (await button.isEnabled()) throw new Error(`'${verb}' is not confirmed by typing`)
      await dialog.getByLabel(`Type ${typed} to confirm`).fill(typed)
    }
    await button.click()
  }

  /** Waits until the page tells it. */
  async told(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor()
  }
}
