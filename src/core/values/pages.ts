/** Reading in parts: a listing page by page, a list slice by slice. */

/** Where the next page begins, to be spread into its query; empty for the first. */
interface PageStart {
  readonly cursor?: string
}

/** The pages of a listing, each read when the caller asks for it. What changes meanwhile may be met twice, or not at all. */
export async function* pagesOf<Page extends { readonly cursor?: string | undefined }>(
  read: (from: PageStart) => Promise<Page>,
): AsyncGenerator<Page, void, undefined> {
  for (let from: PageStart = {}; ; ) {
    const page = await read(from)
    yield page
    if (page.cursor === undefined) return
    from = { cursor: page.cursor }
  }
}

/** The items in their order, cut into slices of at most `most`. */
export function slicesOf<T>(items: readonly T[], most: number): T[][] {
  const slices: T[][] = []
  for (let from = 0; from < items.length; from += most) slices.push(items.slice(from, from + most))
  return slices
}
