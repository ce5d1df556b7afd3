/** Cuts an expression into tokens. */
import { SourceError } from './report.ts';

type TokenKind =
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'name'
  | 'quoted'
  | 'word'
  | 'sign'
  | 'invalid'
  | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** Names, words and signs: as written. `quoted`: without the backticks. */
  readonly text: string;
  readonly at: number;
  readonly end: number;
  /** Strings and bytes: what they stand for. `invalid`: the SourceError that says why. */
  readonly value?: unknown;
}

const WORDS = new Set(['true', 'false', 'null', 'in']);
const SPACE = /(?:[\t\n\f\r ]|\/\/[^\n]*)*/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const QUOTED = /`[A-Za-z0-9_.\-/ ]+`/y;
const DOUBLE = /(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)/y;
const INT = /(?:0x[0-9a-fA-F]+|[0-9]+)/y;
const SIGN = /==|!=|<=|>=|&&|\|\||[-+*/%!<>()[\]{}.,:?]/y;
const STRING =
  /([bB])?("""(?:[^\\]|\\[\s\S])*?"""|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^\\"\n\r]|\\.)*"|'(?:[^\\'\n\r]|\\.)*')/y;
const RAW_STRING = /([bB]?[rR])("""[\s\S]*?"""|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')/y;

const PATTERNS: readonly (readonly [TokenKind, RegExp])[] = [
  ['name', NAME],
  ['double', DOUBLE],
  ['int', INT],
  ['quoted', QUOTED],
  ['sign', SIGN],
];
const STRING_START = /[bBrR]{0,2}["']/y;
/** Tried where a string begins: its prefix looks like a name. */
const STRING_PATTERNS: typeof PATTERNS = [['string', RAW_STRING], ['string', STRING], ...PATTERNS];

/** All tokens; the last has kind `end`, or `invalid` where a character begins no token or a literal cannot be read. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match: Match = (pattern) => {
    pattern.lastIndex = at;
    return pattern.test(source) ? source.slice(at, pattern.lastIndex) : undefined;
  };
  for (;;) {
    at += match(SPACE)!.length;
    if (at >= source.length) break;
    try {
      const token = nextToken(source, at, match);
      tokens.push(token);
      at = token.end;
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      tokens.push({ kind: 'invalid', text: '', at, end: at, value: error });
      return tokens;
    }
  }
  tokens.push({ kind: 'end', text: '', at: source.length, end: source.length });
  return tokens;
}

/** The text that a pattern finds where we are. */
type Match = (pattern: RegExp) => string | undefined;

function nextToken(source: string, at: number, match: Match): Token {
  for (const [kind, pattern] of match(STRING_START) === undefined ? PATTERNS : STRING_PATTERNS) {
    const text = match(pattern);
    if (text === undefined) continue;
    const end = at + text.length;
    if (kind === 'string') {
      const value = stringLiteral(text, at);
      return { kind: typeof value === 'string' ? 'string' : 'bytes', text, at, end, value };
    }
    if (kind === 'int' && /[uU]/.test(source[end] ?? '')) return { kind: 'uint', text, at, end: end + 1 };
    if (kind === 'name' && WORDS.has(text)) return { kind: 'word', text, at, end };
    return { kind, text: kind === 'quoted' ? text.slice(1, -1) : text, at, end };
  }
  const char = String.fromCodePoint(source.codePointAt(at)!);
  if (char === '"' || char === "'") throw new SourceError(at, 'Syntax error: unterminated or invalid string literal');
  throw new SourceError(at, `Syntax error: unexpected character '${char}'`);
}

/** The value of a string or bytes literal as it is written, with its prefix and quotes. */
function stringLiteral(text: string, at: number): string | Uint8Array {
  const prefix = /^[bBrR]*/.exec(text)![0].toLowerCase();
  const quoted = text.slice(prefix.length);
  const quotes = quoted.length >= 6 && (quoted.startsWith('"""') || quoted.startsWith("'''")) ? 3 : 1;
  const body = quoted.slice(quotes, -quotes).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const parts = prefix.includes('r') ? [body] : unescaped(body, { bytes: prefix.includes('b'), at });
  if (!prefix.includes('b')) return parts.join('');
  const chunks = parts.map((part) => (typeof part === 'number' ? Uint8Array.of(part) : Buffer.from(part)));
  return new Uint8Array(Buffer.concat(chunks));
}

/** What letters stand for behind a backslash; a sign stands for itself. */
const SIMPLE: Readonly<Record<string, string>> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };
const ESCAPE = /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\'"`?])|)/g;

/** Texts between escapes and what the escapes stand for: in bytes one byte as a number, in strings a code point as text. */
function unescaped(body: string, { bytes, at }: { readonly bytes: boolean; readonly at: number }): (string | number)[] {
  const parts: (string | number)[] = [];
  let last = 0;
  for (const match of body.matchAll(ESCAPE)) {
    parts.push(body.slice(last, match.index));
    last = match.index + match[0].length;
    const [, x, u, bigU, octal, plain] = match;
    if (plain !== undefined) {
      parts.push(SIMPLE[plain] ?? plain);
      continue;
    }
    const hex = x ?? u ?? bigU;
    const unknown = (bytes && (u ?? bigU) !== undefined) || (hex === undefined && octal === undefined);
    if (unknown) throw new SourceError(at, 'unable to unescape string');
    const code = hex === undefined ? Number.parseInt(octal!, 8) : Number.parseInt(hex, 16);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw new SourceError(at, 'invalid unicode code point');
    parts.push(bytes ? code : String.fromCodePoint(code));
  }
  parts.push(body.slice(last));
  return parts;
}
