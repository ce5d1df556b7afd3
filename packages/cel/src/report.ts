/** Collects the errors of one expression and prints them as cel-go does. */
import { CelCompileError } from './errors.ts';

/** Errors that are listed before the report is cut. */
const MAX_ERRORS = 100;

/** Longest line, in bytes, that is shown below an error. */
const MAX_SNIPPET = 16_384;

/** The place of an error of the whole expression. */
export const NOWHERE = -1;

/** The first place where a text is no expression: reading ends there. */
export class SourceError extends Error {
  /** Offset in the source. */
  readonly at: number;

  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

export class Report {
  readonly #source: string;
  readonly #errors: { at: number; message: string }[] = [];
  #count = 0;

  constructor(source: string) {
    this.#source = source;
  }

  add(at: number, message: string): void {
    if (this.#count++ < MAX_ERRORS) this.#errors.push({ at, message });
  }

  /** @throws CelCompileError when there is an error */
  throwIfAny(): void {
    if (this.#count === 0) return;
    const lines = [...this.#errors].sort((a, b) => a.at - b.at).map((error) => this.#print(error));
    if (this.#count > MAX_ERRORS) lines.push(`${this.#count - MAX_ERRORS} more errors were truncated`);
    throw new CelCompileError('compile', lines.join('\n'));
  }

  #print({ at, message }: { at: number; message: string }): string {
    if (at === NOWHERE) return `ERROR: <input>:-1:0: ${message}`;
    const start = at === 0 ? 0 : this.#source.lastIndexOf('\n', at - 1) + 1;
    const end = this.#source.indexOf('\n', at);
    const line = this.#source.slice(0, start).split('\n').length;
    // Columns count code points. A wide one is underlined wide.
    const before = [...this.#source.slice(start, at)];
    const head = `ERROR: <input>:${line}:${before.length + 1}: ${message}`;
    const text = this.#source.slice(start, end === -1 ? undefined : end).replaceAll('\t', ' ');
    if (this.#source === '' || Buffer.byteLength(text) > MAX_SNIPPET) return head;
    const dots = before.map((char) => (char.codePointAt(0)! > 0x7f ? '．' : '.')).join('');
    const mark = (this.#source.codePointAt(at) ?? 0) > 0x7f ? '＾' : '^';
    return `${head}\n | ${text}\n | ${dots}${mark}`;
  }
}
