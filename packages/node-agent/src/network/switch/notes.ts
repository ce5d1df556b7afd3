/** Notes of a switch that may say more than fits into one. */
import { noteFrame } from '../frame-stream.ts';
import type { Line } from './guest-port.ts';
import type { AddressChange } from './switch-state.ts';

/** Addresses in one note, and guests: far below the longest frame. */
const MAX_IN_NOTE = 1000;

/** Lists of which each fits into a note: one at least. */
export function* chunks<T>(list: readonly T[]): Generator<{ readonly part: readonly T[]; readonly isFirst: boolean }> {
  for (let at = 0; at === 0 || at < list.length; at += MAX_IN_NOTE)
    yield { part: list.slice(at, at + MAX_IN_NOTE), isFirst: at === 0 };
}

/** Tells a filter which addresses are its to bring to the switch. */
export function announceAddresses(
  line: Line,
  { add, remove, whole = false }: { add: readonly string[]; remove: readonly string[]; whole?: boolean },
): void {
  for (const { part, isFirst } of chunks(add)) {
    const news: AddressChange = { type: 'addresses', whole: whole && isFirst, add: part, remove: [] };
    line.write(noteFrame(news));
  }
  for (const { part } of chunks(remove)) {
    const news: AddressChange = { type: 'addresses', whole: false, add: [], remove: part };
    if (part.length > 0) line.write(noteFrame(news));
  }
}
