/** The time zone of a CronJob: a name of the IANA database (batch/validation, validateTimeZone). */
import type { FieldError } from '../../../meta/status.ts';
import { invalid } from './field-errors.ts';

const PART = /^[A-Za-z.\-_0-9+]{1,14}$/;

/** What is wrong with a zone, where one is given. */
export function timeZoneErrors(zone: unknown, at: string): FieldError[] {
  if (typeof zone !== 'string') return [];
  if (zone === '') return [invalid(at, zone, 'timeZone must be nil or non-empty string')];
  const isName = (part: string): boolean => part !== '.' && part !== '..' && !part.startsWith('-') && PART.test(part);
  if (!zone.split('/').every(isName)) return [invalid(at, zone, `unknown time zone ${zone}`)];
  if (zone.toLowerCase() === 'local') {
    const detail = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    return [invalid(at, zone, detail), ...(zone === 'Local' ? [] : [invalid(at, zone, `unknown time zone ${zone}`)])];
  }
  return isKnown(zone) ? [] : [invalid(at, zone, `unknown time zone ${zone}`)];
}

/** Zones are files, each of one name: the engine takes that in any case, and tells how it is written. */
function isKnown(zone: string): boolean {
  // To the engine that may be an offset.
  if (/^[+\-\d]/.test(zone)) return false;
  try {
    return nameOf(zone) === zone;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Throws RangeError when there is no such zone. */
function nameOf(zone: string): string {
  if (typeof Temporal !== 'undefined') return new Temporal.ZonedDateTime(0n, zone).timeZoneId;
  // Older engines know the name of an alias by what it stands for alone, so that its case cannot be judged.
  new Intl.DateTimeFormat('en', { timeZone: zone });
  return zone;
}
