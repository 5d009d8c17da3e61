/** The anchor of a heading: what GitHub makes of its text, so that one link works there and on the site. */

export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
