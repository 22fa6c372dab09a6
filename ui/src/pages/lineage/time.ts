/** Where moments stand on the slider, which ends now and goes back some days. */

export const STEPS = 400;
export const DAYS = [1, 7, 30, 90] as const;
const DAYS_USUAL = 7;
const DAY_MS = 86_400_000;

/** How far back the slider goes, as the address has it. */
export function daysAsked(text: string | null): number {
  return DAYS.find((days) => String(days) === text) ?? DAYS_USUAL;
}

/** The step nearest to a moment: an end of the slider for one that lies outside, or is none. */
export function stepOf(moment: number, now: number, days: number): number {
  const step = STEPS - ((now - moment) / (days * DAY_MS)) * STEPS;
  return Number.isNaN(step) ? STEPS : Math.max(0, Math.min(STEPS, Math.round(step)));
}

/** The moment at a step, in whole seconds, as it is both shown and asked for; null at the end, which is now. */
export function momentAt(step: number, now: number, days: number): number | null {
  if (step >= STEPS) return null;
  const moment = now - ((STEPS - step) / STEPS) * days * DAY_MS;
  return moment - (moment % 1000);
}
