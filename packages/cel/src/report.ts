/** The first error of an expression, with its place, printed as cel-go does. */
import { CelCompileError } from './errors.ts';

/** Longest line, in bytes, that is shown below an error. */
const MAX_SNIPPET = 16_384;

/** The place of an error of the whole expression. */
export const NOWHERE = -1;

/** The first place where a text is no expression, or has no type: it is read no further. */
export class SourceError extends Error {
  /** Offset in the source. */
  readonly at: number;

  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** What `read` makes of the source. Throws CelCompileError for the SourceError that it throws. */
export function readSource<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new CelCompileError('compile', print(source, error));
  }
}

function print(source: string, { at, message }: SourceError): string {
  if (at === NOWHERE) return `ERROR: <input>:-1:0: ${message}`;
  const start = at === 0 ? 0 : source.lastIndexOf('\n', at - 1) + 1;
  const end = source.indexOf('\n', at);
  const line = source.slice(0, start).split('\n').length;
  // Columns count code points. A wide one is underlined wide.
  const before = [...source.slice(start, at)];
  const head = `ERROR: <input>:${line}:${before.length + 1}: ${message}`;
  const text = source.slice(start, end === -1 ? undefined : end).replaceAll('\t', ' ');
  if (source === '' || Buffer.byteLength(text) > MAX_SNIPPET) return head;
  const dots = before.map((char) => (char.codePointAt(0)! > 0x7f ? '．' : '.')).join('');
  const mark = (source.codePointAt(at) ?? 0) > 0x7f ? '＾' : '^';
  return `${head}\n | ${text}\n | ${dots}${mark}`;
}
