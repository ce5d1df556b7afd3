/** Collects the faults of one expression and prints them as cel-go does. */
import { CelCompileError } from './errors.ts';

/** Faults that are listed before the report is cut. */
const MAX_FAULTS = 100;

/** Longest line, in bytes, that is shown below a fault. */
const MAX_SNIPPET = 16_384;

/** The place of a fault of the whole expression. */
export const NOWHERE = -1;
/** The place of a part that is missing: upstream prints it as the column before the first. */
export const BEFORE = -2;

export class Report {
  readonly #source: string;
  readonly #faults: { at: number; message: string }[] = [];
  #count = 0;

  constructor(source: string) {
    this.#source = source;
  }

  add(at: number, message: string): void {
    if (this.#count++ < MAX_FAULTS) this.#faults.push({ at, message });
  }

  get empty(): boolean {
    return this.#faults.length === 0;
  }

  /** @throws CelCompileError when there is a fault */
  throwIfAny(): void {
    if (this.empty) return;
    // Places count from 1; the whole text comes first, then a part that is missing.
    const order = (at: number): number => (at === NOWHERE ? BEFORE : at === BEFORE ? NOWHERE : at);
    const lines = [...this.#faults].sort((a, b) => order(a.at) - order(b.at)).map((fault) => this.#print(fault));
    if (this.#count > MAX_FAULTS) lines.push(`${this.#count - MAX_FAULTS} more errors were truncated`);
    throw new CelCompileError('compile', lines.join('\n'));
  }

  #print({ at, message }: { at: number; message: string }): string {
    if (at === NOWHERE) return `ERROR: <input>:-1:0: ${message}`;
    const place = Math.max(at, 0);
    const start = place === 0 ? 0 : this.#source.lastIndexOf('\n', place - 1) + 1;
    const end = this.#source.indexOf('\n', place);
    const line = 1 + (this.#source.slice(0, start).match(/\n/g)?.length ?? 0);
    // Columns count code points. A wide one is underlined wide.
    const before = [...this.#source.slice(start, place)];
    const column = at === BEFORE || this.#source === '' ? 0 : before.length + 1;
    const head = `ERROR: <input>:${line}:${column}: ${message}`;
    const text = this.#source.slice(start, end === -1 ? undefined : end).replaceAll('\t', ' ');
    if (this.#source === '' || Buffer.byteLength(text) > MAX_SNIPPET) return head;
    const dots = before.map((char) => (char.codePointAt(0)! > 0x7f ? '．' : '.')).join('');
    const mark = (this.#source.codePointAt(place) ?? 0) > 0x7f ? '＾' : '^';
    return `${head}\n | ${text}\n | ${dots}${mark}`;
  }
}
