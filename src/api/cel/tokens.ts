/** Cuts an expression into tokens. */
import type { Report } from './report.ts';
import { CelDouble, CelUint, intFromBigInt } from './values.ts';

export type TokenKind = 'int' | 'uint' | 'double' | 'string' | 'bytes' | 'name' | 'quoted' | 'word' | 'sign' | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** Names, words and signs: as written. `quoted`: without the backticks. */
  readonly text: string;
  readonly at: number;
  readonly end: number;
  readonly value?: unknown;
}

const WORDS = new Set(['true', 'false', 'null', 'in']);
const SPACE = /[\t\n\f\r ]+|\/\/[^\n]*/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const QUOTED = /`[A-Za-z0-9_.\-/ ]+`/y;
const DOUBLE = /(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)/y;
const INT = /(?:0x[0-9a-fA-F]+|[0-9]+)/y;
const SIGN = /==|!=|<=|>=|&&|\|\||[-+*/%!<>()[\]{}.,:?]/y;
const STRING =
  /([bB]?[rR]|[rR]?[bB])?("""(?:[^\\]|\\[\s\S])*?"""|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^\\"\n\r]|\\.)*"|'(?:[^\\'\n\r]|\\.)*')/y;
const RAW_STRING = /([bB]?[rR]|[rR][bB])("""[\s\S]*?"""|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')/y;

/** All tokens; the last has kind `end`. What is no token is reported and skipped. */
export function tokenize(source: string, report: Report): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(source);
  };
  const push = (kind: TokenKind, text: string, length: number, value?: unknown): void => {
    tokens.push({ kind, text, at, end: at + length, value });
    at += length;
  };
  while (at < source.length) {
    const space = match(SPACE);
    if (space !== null) {
      at += space[0].length;
      continue;
    }
    const string = match(RAW_STRING) ?? match(STRING);
    if (string !== null) {
      pushString(string, at, report, push);
      continue;
    }
    const name = match(NAME)?.[0];
    if (name !== undefined) {
      push(WORDS.has(name) ? 'word' : 'name', name, name.length);
      continue;
    }
    const double = match(DOUBLE)?.[0];
    if (double !== undefined) {
      const value = Number(double);
      if (!Number.isFinite(value)) report.add(at, 'invalid double literal');
      push('double', double, double.length, new CelDouble(value));
      continue;
    }
    const int = match(INT)?.[0];
    if (int !== undefined) {
      const unsigned = /[uU]/.test(source[at + int.length] ?? '');
      push(unsigned ? 'uint' : 'int', int, int.length + (unsigned ? 1 : 0), BigInt(int));
      continue;
    }
    const quoted = match(QUOTED)?.[0];
    if (quoted !== undefined) {
      push('quoted', quoted.slice(1, -1), quoted.length);
      continue;
    }
    const sign = match(SIGN)?.[0];
    if (sign !== undefined) {
      push('sign', sign, sign.length);
      continue;
    }
    at += reportUnknown(source, at, report);
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: source.length, end: source.length });
  return tokens;
}

function pushString(
  match: RegExpExecArray,
  at: number,
  report: Report,
  push: (kind: TokenKind, text: string, length: number, value: unknown) => void,
): void {
  const prefix = (match[1] ?? '').toLowerCase();
  const quoted = match[2]!;
  const quotes = quoted.startsWith('"""') || quoted.startsWith("'''") ? 3 : 1;
  const body = quoted.slice(quotes, -quotes).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const bytes = prefix.includes('b');
  const value = unescapeText(body, prefix.includes('r'), bytes);
  if (value === undefined) report.add(at, `invalid ${bytes ? 'bytes' : 'string'} literal`);
  push(bytes ? 'bytes' : 'string', match[0], match[0].length, value ?? '');
}

/** ANTLR's words: an unfinished token is named up to the character that broke it. */
function reportUnknown(source: string, at: number, report: Report): number {
  const char = String.fromCodePoint(source.codePointAt(at)!);
  let length = char.length;
  if (char === '"' || char === "'") {
    const stop = source.slice(at + 1).search(/[\n\r]/);
    length = stop === -1 ? source.length - at : stop + 2;
  } else if ('=&|'.includes(char)) {
    length = Math.min(2, source.length - at);
  }
  const text = source
    .slice(at, at + length)
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t');
  report.add(at, `Syntax error: token recognition error at: '${text}'`);
  return length;
}

/** The value of an int literal, `sign` included; undefined when it does not fit. */
export function intLiteral(digits: bigint): number | bigint | undefined {
  return digits >= -(1n << 63n) && digits < 1n << 63n ? intFromBigInt(digits) : undefined;
}

/** The value of a uint literal; undefined when it does not fit. */
export const uintLiteral = (digits: bigint): CelUint | undefined =>
  digits < 1n << 64n ? new CelUint(digits) : undefined;

const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '`': '`',
  '?': '?',
};
const ESCAPE =
  /\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\'"`?])|)/g;

/** Strings: text. Bytes: a Uint8Array. Undefined when an escape is not valid. */
function unescapeText(body: string, raw: boolean, bytes: boolean): string | Uint8Array | undefined {
  const encoder = new TextEncoder();
  if (raw) return bytes ? encoder.encode(body) : body;
  const parts: (string | number)[] = [];
  let last = 0;
  for (const match of body.matchAll(ESCAPE)) {
    parts.push(body.slice(last, match.index));
    last = match.index + match[0].length;
    const [, x, bigX, u, bigU, octal, plain] = match;
    if (plain !== undefined) {
      parts.push(SIMPLE[plain]!);
      continue;
    }
    if (bytes && (u ?? bigU) !== undefined) return undefined;
    const hex = x ?? bigX ?? u ?? bigU;
    if (hex === undefined && octal === undefined) return undefined;
    const code = hex === undefined ? Number.parseInt(octal!, 8) : Number.parseInt(hex, 16);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return undefined;
    // In bytes an escape is one byte, in strings one code point.
    parts.push(bytes ? code : String.fromCodePoint(code));
  }
  parts.push(body.slice(last));
  if (!bytes) return parts.join('');
  const chunks = parts.map((part) => (typeof part === 'number' ? Uint8Array.of(part) : encoder.encode(part)));
  const out = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    out.set(chunk, offset);
    offset += chunk.length;
  }
  return out;
}
