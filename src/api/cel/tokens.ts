/** Cuts an expression into tokens. */
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
  /([bB])?("""(?:[^\\]|\\[\s\S])*?"""|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^\\"\n\r]|\\.)*"|'(?:[^\\'\n\r]|\\.)*')/y;
const RAW_STRING = /([bB]?[rR])("""[\s\S]*?"""|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')/y;

/** All tokens; the last has kind `end`. Undefined when something is no token, or a literal does not fit its type. */
export function tokenize(source: string): Token[] | undefined {
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
      const value = stringLiteral(string[0]);
      if (typeof value === 'object' && 'fault' in value) return undefined;
      push(typeof value === 'string' ? 'string' : 'bytes', string[0], string[0].length, value);
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
      if (!Number.isFinite(value)) return undefined;
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
    return undefined;
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: source.length, end: source.length });
  return tokens;
}

/** The value of a string or bytes literal as it is written, with its prefix and quotes. */
export function stringLiteral(text: string): string | Uint8Array | { readonly fault: string } {
  const prefix = /^[bBrR]*/.exec(text)![0].toLowerCase();
  const quoted = text.slice(prefix.length);
  const quotes = quoted.length >= 6 && (quoted.startsWith('"""') || quoted.startsWith("'''")) ? 3 : 1;
  const body = quoted.slice(quotes, -quotes).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  return unescapeText(body, prefix.includes('r'), prefix.includes('b'));
}

/** The digits of an int or uint literal as they are written, without sign and `u`. */
export const numberText = (text: string): bigint | undefined =>
  /^(?:0x)?[0-9a-fA-F]+$/.test(text) ? BigInt(text) : undefined;

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

/** Strings: text. Bytes: a Uint8Array. */
function unescapeText(body: string, raw: boolean, bytes: boolean): string | Uint8Array | { readonly fault: string } {
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
    const hex = x ?? bigX ?? u ?? bigU;
    const unknown = (bytes && (u ?? bigU) !== undefined) || (hex === undefined && octal === undefined);
    if (unknown) return { fault: 'unable to unescape string' };
    const code = hex === undefined ? Number.parseInt(octal!, 8) : Number.parseInt(hex, 16);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return { fault: 'invalid unicode code point' };
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
