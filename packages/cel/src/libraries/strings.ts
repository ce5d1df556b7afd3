/** The strings extension, version 2. Positions count code points. */
import { GO_ESCAPES } from '@coracle/apimachinery/meta/go-text';
import { JOIN, QUOTE, REPLACE, SPLIT, TRAVERSE, TRAVERSE_ONLY, WALK } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { fail, noOverload } from '../errors.ts';
import { codePoints } from '../values.ts';
import { formatString } from './string-format.ts';

const outOfRange = (position: number | bigint): never => fail(`index out of range: ${position}`);

/** UTF-16 offset of a code point. @throws CelEvaluationError beyond the end */
function offset(text: string, position: number | bigint): number {
  const size = codePoints(text);
  if (position < 0 || position > size) return outOfRange(position);
  if (size === text.length) return Number(position);
  let at = 0;
  for (let i = 0; i < Number(position); i++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return at;
}

function charAt(text: string, position: number | bigint): string {
  const code = text.codePointAt(offset(text, position));
  return code === undefined ? '' : String.fromCodePoint(code);
}

function indexOf(text: string, part: string, from: number | bigint = 0): number {
  // Nothing is found wherever it is looked for.
  if (part === '') return Number(from);
  if (from < 0) outOfRange(from);
  if (from >= codePoints(text)) return -1;
  const found = text.indexOf(part, offset(text, from));
  return found === -1 ? -1 : codePoints(text.slice(0, found));
}

function lastIndexOf(text: string, part: string, from?: number | bigint): number {
  if (part === '') return Number(from ?? codePoints(text));
  if (from !== undefined && from < 0) outOfRange(from);
  if (from !== undefined && from >= codePoints(text)) return -1;
  const found = text.lastIndexOf(part, from === undefined ? Number.POSITIVE_INFINITY : offset(text, from));
  return found === -1 ? -1 : codePoints(text.slice(0, found));
}

function substring(text: string, start: number | bigint, end?: number | bigint): string {
  const size = codePoints(text);
  if (end !== undefined && start > end) fail(`invalid substring range. start: ${start}, end: ${end}`);
  if (start < 0 || start > size) outOfRange(start);
  if (end === undefined) return text.slice(offset(text, start));
  if (end < 0 || end > size) outOfRange(end);
  return text.slice(offset(text, start), offset(text, end));
}

/** Longest text that `replace` and `join` make: beyond it the cost would come too late. */
const MAX_RESULT = 32 * 1024 * 1024;

function checkLength(length: number): void {
  if (length > MAX_RESULT) fail(`the result is longer than ${MAX_RESULT} characters`);
}

/** The first `count` replacements, all when it is negative. */
function replace(text: string, from: string, to: string, count: number | bigint = -1): string {
  checkLength(text.length + Math.ceil((text.length + 1) / Math.max(from.length, 1)) * to.length);
  if (count < 0 && from !== '') return text.replaceAll(from, () => to);
  const limit = count < 0 ? Number.POSITIVE_INFINITY : Number(count);
  if (from === '') return ['', ...text].map((char, i) => char + (i < limit ? to : '')).join('');
  const parts = text.split(from);
  const done = Math.min(parts.length - 1, limit);
  return parts.map((part, i) => (i === 0 ? part : (i <= done ? to : from) + part)).join('');
}

/** At most `count` parts, all when it is negative, none when it is 0. */
function split(text: string, separator: string, count: number | bigint = -1): string[] {
  if (count === 0) return [];
  const parts = separator === '' ? [...text] : text.split(separator);
  if (count < 0 || parts.length <= count) return parts;
  const kept = Number(count) - 1;
  return [...parts.slice(0, kept), parts.slice(kept).join(separator)];
}

function join(list: readonly unknown[], separator = ''): string {
  if (!list.every((item) => typeof item === 'string')) throw noOverload();
  checkLength(list.reduce((sum: number, item) => sum + (item as string).length + separator.length, 0));
  return list.join(separator);
}

const lower = (text: string): string => text.replace(/[A-Z]/g, (char) => char.toLowerCase());
const upper = (text: string): string => text.replace(/[a-z]/g, (char) => char.toUpperCase());

const SPACE = '[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+';
const EDGES = new RegExp(`^${SPACE}|${SPACE}$`, 'g');

const quote = (text: string): string =>
  `"${[...text.toWellFormed()].map((char) => GO_ESCAPES[char] ?? char).join('')}"`;

export const STRINGS: readonly Overload[] = [
  overload('charAt', 'string.(int): string', charAt),
  overload('indexOf', 'string.(string): int', indexOf, WALK),
  overload('indexOf', 'string.(string, int): int', indexOf, WALK),
  overload('lastIndexOf', 'string.(string): int', lastIndexOf, WALK),
  overload('lastIndexOf', 'string.(string, int): int', lastIndexOf, WALK),
  overload('lowerAscii', 'string.(): string', lower, TRAVERSE),
  overload('upperAscii', 'string.(): string', upper, TRAVERSE),
  overload('trim', 'string.(): string', (text: string) => text.replace(EDGES, ''), TRAVERSE),
  overload('substring', 'string.(int): string', substring, TRAVERSE),
  overload('substring', 'string.(int, int): string', substring, TRAVERSE),
  overload('replace', 'string.(string, string): string', replace, REPLACE),
  overload('replace', 'string.(string, string, int): string', replace, REPLACE),
  overload('split', 'string.(string): list(string)', split, SPLIT),
  overload('split', 'string.(string, int): list(string)', split, SPLIT),
  overload('join', 'list(string).(): string', join, JOIN),
  overload('join', 'list(string).(string): string', join, JOIN),
  overload('format', 'string.(list(dyn)): string', formatString, TRAVERSE_ONLY),
  overload('strings.quote', '(string): string', quote, QUOTE),
];
