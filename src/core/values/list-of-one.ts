/**
 * A list of one item, for objects that are made for each job.
 *
 * Whatever is made for each job is of a class, and no literal: V8 allocates what a literal makes in the old generation
 * for good, once much of it has outlived a collection, as happens whenever hundreds of jobs are under way at once. From
 * then on every job takes half as long again, in some processes and not in others.
 */
export function listOfOne<Item>(item: Item): Item[] {
  return new Array<Item>(1).fill(item)
}
