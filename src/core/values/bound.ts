/** Methods as functions of their own, which keep the object that they are of. */

export function bound<Of extends object, Name extends keyof Of>(of: Of, ...names: readonly Name[]): Pick<Of, Name> {
  const calls = names.map((name) => [name, (of[name] as (...args: unknown[]) => unknown).bind(of)])
  return Object.fromEntries(calls) as Pick<Of, Name>
}
