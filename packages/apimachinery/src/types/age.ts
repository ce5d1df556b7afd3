/** Ages as kubectl prints them (apimachinery util/duration, HumanDuration). */
import { type JsonObject, textAt } from './read-value.ts';

/** `5s`, `3m20s`, `8h`, `2d4h`, `5y`: two units at most, and one as soon as the second would not matter. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  // A little skew between clocks is not worth a complaint.
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return pair([minutes, 'm'], [seconds % 60, 's']);
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return pair([hours, 'h'], [minutes % 60, 'm']);
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 24 * 8) return pair([days, 'd'], [hours % 24, 'h']);
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.trunc(days / 365);
  if (hours < 24 * 365 * 8) return pair([years, 'y'], [days % 365, 'd']);
  return `${years}y`;
}

const pair = (major: [number, string], minor: [number, string]): string =>
  minor[0] === 0 ? major.join('') : major.join('') + minor.join('');

/** How long ago a timestamp was; `<unknown>` when there is none. */
export function ageSince(time: unknown, now: number): string {
  const ms = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return Number.isNaN(ms) ? '<unknown>' : humanDuration(now - ms);
}

/** The Age cell of any object. */
export const age = (object: JsonObject, now: number): string =>
  ageSince(textAt(object, 'metadata', 'creationTimestamp'), now);
