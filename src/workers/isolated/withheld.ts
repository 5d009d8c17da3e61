/**
 * The variables withheld from a command of `millrace exec`: those that hold secrets of its store or keys of its seal.
 * Pure.
 */

/**
 * The value that replaces the secret. A program that finds no value may take another store, and its jobs would be lost
 * there.
 */
const withheld = 'withheld:by-millrace-exec'

const leastPart = 6

type Variables = Readonly<Record<string, string | undefined>>

/**
 * The variables without secrets, except those that are `named`. `secrets`: the secret texts, in every form in which
 * they may be written.
 */
export function withoutSecrets(env: Variables, secrets: readonly string[], named: readonly string[]): Variables {
  const mayKeep = new Set(named)
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const isSecret = value !== undefined && (hasPassword(name, value) || secrets.some((one) => holds(value, one)))
      return [name, isSecret && !mayKeep.has(name) ? withheld : value]
    }),
  )
}

/** A short secret may be a part of anything. */
function holds(value: string, secret: string): boolean {
  return secret.length < leastPart ? value === secret : value.includes(secret)
}

/** Whether it is an address with a password, with which the store may have been opened. */
function hasPassword(name: string, value: string): boolean {
  return name === 'MILLRACE_STORE' ? value.includes('@') : /^rediss?(?:\+\w+)?:\/\/.*@/.test(value)
}
