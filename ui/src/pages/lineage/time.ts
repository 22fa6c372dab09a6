/** The steps of the time slider, which ends now and goes back some days. */

export const STEPS = 400;
export const DAYS = [1, 7, 30, 90] as const;
const DAYS_USUAL = 7;
const DAY_MS = 86_400_000;

/** Read the number of days from the address. */
export function daysAsked(text: string | null): number {
  return DAYS.find((days) => String(days) === text) ?? DAYS_USUAL;
}

/** Find the step nearest to a time: an end of the slider for a time outside, or an invalid one. */
export function stepOf(moment: number, now: number, days: number): number {
  const step = STEPS - ((now - moment) / (days * DAY_MS)) * STEPS;
  return Number.isNaN(step) ? STEPS : Math.max(0, Math.min(STEPS, Math.round(step)));
}

/** Compute the time of a step in whole seconds, as it is shown and sent; null for now. */
export function momentAt(step: number, now: number, days: number): number | null {
  if (step >= STEPS) return null;
  const moment = now - ((STEPS - step) / STEPS) * days * DAY_MS;
  return moment - (moment % 1000);
}
