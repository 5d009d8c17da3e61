/** The log-in page: asks for the token of the window, in place of the requested page. */

import { useEffect, useState } from 'preact/hooks'
import { loadSession, post } from '../api/api-client.js'
import { messageOf } from '../api/api-error.js'
import { WheelMark } from '../page-shell.js'
import { Field } from '../parts/form-field.js'
import { Button } from '../parts/press-button.js'

export function LoginPage() {
  const [token, setToken] = useState('')
  const [mistake, setMistake] = useState<string>()
  const [isSending, setSending] = useState(false)
  useEffect(() => {
    document.title = 'Log in · Millrace'
  }, [])
  const logIn = async () => {
    setSending(true)
    try {
      await post('session', { token: token.trim() })
      await loadSession()
    } catch (error) {
      setMistake(messageOf(error))
      setSending(false)
    }
  }
  return (
    <main class="grid min-h-dvh place-items-center p-4">
      <form
        class="panel grid w-full max-w-sm gap-4 p-6"
        onSubmit={(event) => {
          event.preventDefault()
          void logIn()
        }}
      >
        <div class="flex items-center gap-2 font-semibold">
          <WheelMark />
          Millrace
        </div>
        <h1 class="text-xl font-semibold tracking-tight">Log in</h1>
        <Field
          label="Token"
          type="password"
          value={token}
          onInput={setToken}
          mistake={mistake}
          hint="What this dashboard was started with. millrace dash prints a link that logs in without it."
          isRequired
        />
        <Button type="submit" kind="main" isDisabled={isSending}>
          Log in
        </Button>
      </form>
    </main>
  )
}
