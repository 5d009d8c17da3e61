/** The wheel mark: the sign of the project. */

export function WheelMark() {
  return (
    <svg viewBox="0 0 24 24" class="size-5.5 text-accent" fill="none" stroke="currentColor" aria-hidden="true">
      <circle cx="12" cy="12" r="7" stroke-width="2" />
      <path d="M12 2v20M2 12h20M5 5l14 14M19 5 5 19" stroke-width="1.5" stroke-linecap="round" />
    </svg>
  )
}
