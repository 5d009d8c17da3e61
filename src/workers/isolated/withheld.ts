/** The variables that are withheld from a command of `millrace exec`: those that hold the secrets of its store and the keys of its seal. Pure. */

/** In the place of what it held: a program that finds none may take another store, and what it enqueues there is lost. */
const withheld = 'withheld:by-millrace-exec'

const leastPart = 6

type Variables = Readonly<Record<string, string | undefined>>

/** The variables without secrets, but for those that are `named`. `secrets`: as they are written anywhere. */
export function withoutSecrets(env: Variables, secrets: readonly string[], named: readonly string[]): Variables {
  const mayKeep = new Set(named)
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const isSecret = value !== undefined && (hasPassword(name, value) || secrets.some((one) => holds(value, one)))
      return [name, isSecret && !mayKeep.has(name) ? withheld : value]
    }),
  )
}

/** A short one may be a part of anything. */
function holds(value: string, secret: string): boolean {
  return secret.length < leastPart ? value === secret : value.includes(secret)
}

/** An address with a password in it, which the store may have been opened by. */
function hasPassword(name: string, value: string): boolean {
  return name === 'MILLRACE_STORE' ? value.includes('@') : /^rediss?(?:\+\w+)?:\/\/.*@/.test(value)
}
