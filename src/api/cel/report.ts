/** Collects the faults of one expression and prints them as cel-go does. */
import { CelCompileError } from './errors.ts';

/** Faults that are listed before the report is cut. */
const MAX_FAULTS = 100;

/** The place of a fault of the whole expression. */
export const NOWHERE = -1;

export class Report {
  readonly #source: string;
  readonly #faults: { at: number; message: string }[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  add(at: number, message: string): void {
    if (this.#faults.length >= MAX_FAULTS) return;
    if (this.#faults.some((fault) => fault.at === at && fault.message === message)) return;
    this.#faults.push({ at, message });
  }

  get empty(): boolean {
    return this.#faults.length === 0;
  }

  /** @throws CelCompileError when there is a fault */
  throwIfAny(): void {
    if (this.empty) return;
    const sorted = [...this.#faults].sort((a, b) => a.at - b.at);
    throw new CelCompileError('compile', sorted.map((fault) => this.#print(fault)).join('\n'));
  }

  #print({ at, message }: { at: number; message: string }): string {
    if (at === NOWHERE) return `ERROR: <input>:-1:0: ${message}`;
    const start = this.#source.lastIndexOf('\n', at - 1) + 1;
    const end = this.#source.indexOf('\n', at);
    const line = 1 + (this.#source.slice(0, start).match(/\n/g)?.length ?? 0);
    // Columns count code points. A wide one is underlined wide.
    const before = [...this.#source.slice(start, at)];
    const text = this.#source.slice(start, end === -1 ? undefined : end).replaceAll('\t', ' ');
    const dots = before.map((char) => (char.codePointAt(0)! > 0x7f ? '．' : '.')).join('');
    const mark = (this.#source.codePointAt(at) ?? 0) > 0x7f ? '＾' : '^';
    return `ERROR: <input>:${line}:${before.length + 1}: ${message}\n | ${text}\n | ${dots}${mark}`;
  }
}
