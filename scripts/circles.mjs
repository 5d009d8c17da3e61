/** Circles: of arrows between names, those that lie on a way back to where they begin (Tarjan, 1972). */

/** Each circle as its arrows. An arrow is `{ from, to, … }`; several may go the same way. */
export function circlesIn(arrows) {
  const next = grouped(arrows)
  const found = []
  const [order, lowest, open] = [new Map(), new Map(), []]
  const visit = (name) => {
    order.set(name, order.size)
    lowest.set(name, order.get(name))
    open.push(name)
    for (const { to } of next.get(name) ?? []) {
      if (!order.has(to)) visit(to)
      if (open.includes(to)) lowest.set(name, Math.min(lowest.get(name), lowest.get(to)))
    }
    if (lowest.get(name) !== order.get(name)) return
    const members = new Set(open.splice(open.indexOf(name)))
    if (members.size > 1) found.push(arrows.filter(({ from, to }) => members.has(from) && members.has(to)))
  }
  for (const { from } of arrows) if (!order.has(from)) visit(from)
  return found
}

function grouped(arrows) {
  const by = new Map()
  for (const arrow of arrows) by.set(arrow.from, [...(by.get(arrow.from) ?? []), arrow])
  return by
}
