/**
 * The tokens of a text that was refused, cut as upstream's lexer cuts: the longest token wins, and where none fits
 * everything that still looked like the beginning of one is named and skipped, with the character that broke it. Tokens
 * are cut as they are asked for, since a parser that gives up leaves the rest of the text unread.
 */
import { END, TOKENS } from './grammar.ts';
import type { TreeToken } from './tree.ts';

export interface StreamToken extends TreeToken {
  /** Place among all tokens, with spaces and comments. */
  readonly index: number;
}

const WORD = TOKENS.indexOf('IDENTIFIER');
const LITERALS = new Map(TOKENS.flatMap((name, kind) => (name.startsWith("'") ? [[name.slice(1, -1), kind]] : [])));

const ESCAPE = String.raw`\\(?:[abfnrtv"'\\?${'`'}]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})`;
/** The beginning of an escape that is not complete. */
const CUT_ESCAPE = String.raw`\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?`;
const body = (quote: string): string => `(?:[^\\\\${quote}\\n\\r]|${ESCAPE})*`;
const QUOTED = `"""(?:[^\\\\]|${ESCAPE})*?"""|'''(?:[^\\\\]|${ESCAPE})*?'''|"${body('"')}"|'${body("'")}'`;
const RAW = `[rR](?:"""[\\s\\S]*?"""|'''[\\s\\S]*?'''|"[^"\\n\\r]*"|'[^'\\n\\r]*')`;

const pattern = (source: string): RegExp => new RegExp(source, 'uy');
/** In the order in which they win when they are equally long. */
const PATTERNS: readonly (readonly [kind: number, pattern: RegExp])[] = [
  [TOKENS.indexOf('WHITESPACE'), pattern('[\\t \\r\\n\\f]+')],
  [TOKENS.indexOf('COMMENT'), pattern('//[^\\n]*')],
  [
    TOKENS.indexOf('NUM_FLOAT'),
    pattern('[0-9]+\\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\\.[0-9]+(?:[eE][+-]?[0-9]+)?'),
  ],
  [TOKENS.indexOf('NUM_INT'), pattern('0x[0-9a-fA-F]+|[0-9]+')],
  [TOKENS.indexOf('NUM_UINT'), pattern('(?:0x[0-9a-fA-F]+|[0-9]+)[uU]')],
  [TOKENS.indexOf('STRING'), pattern(`${RAW}|${QUOTED}`)],
  [TOKENS.indexOf('BYTES'), pattern(`[bB](?:${RAW}|${QUOTED})`)],
  [WORD, pattern('[A-Za-z_][A-Za-z0-9_]*')],
  [TOKENS.indexOf('ESC_IDENTIFIER'), pattern('`[A-Za-z0-9_.\\-/ ]+`')],
];
const SIGN = pattern('==|!=|<=|>=|&&|\\|\\||[-+*/%!<>()[\\]{}.,:?]');
/** What is no token and may still become one; the next character breaks it. */
const BEGINNING = pattern(
  `"${body('"')}(?:${CUT_ESCAPE})?|'${body("'")}(?:${CUT_ESCAPE})?|\`[A-Za-z0-9_.\\-/ ]*|=|&|\\||`,
);
const HIDDEN = new Set([TOKENS.indexOf('WHITESPACE'), TOKENS.indexOf('COMMENT')]);

export class TokenStream {
  readonly #source: string;
  readonly #unknown: (at: number, text: string) => void;
  readonly #all: StreamToken[] = [];
  readonly #seen: StreamToken[] = [];
  #at = 0;
  #current = 0;

  /** `unknown` is told what is no token, when the stream comes upon it. */
  constructor(source: string, unknown: (at: number, text: string) => void) {
    this.#source = source;
    this.#unknown = unknown;
  }

  /** The token `offset` ahead of the current one; behind the end stands the end. */
  ahead(offset: number): StreamToken {
    const index = this.#current + offset;
    while (this.#seen.length <= index && this.#seen.at(-1)?.kind !== END) this.#cut();
    return this.#seen[Math.min(index, this.#seen.length - 1)]!;
  }

  get position(): number {
    return this.#current;
  }

  get previous(): StreamToken | undefined {
    return this.#seen[this.#current - 1];
  }

  /** The end stays where it is. */
  consume(): StreamToken {
    const token = this.ahead(0);
    if (token.kind !== END) this.#current++;
    return token;
  }

  /** The text of the tokens from one to another, without what was no token. */
  text(from: StreamToken, to: StreamToken): string {
    return this.#all
      .slice(from.index, to.index + 1)
      .map((token) => (token.kind === END ? '' : token.text))
      .join('');
  }

  #cut(): void {
    const at = this.#at;
    if (at >= this.#source.length) {
      this.#push(END, '<EOF>');
      return;
    }
    let kind = -1;
    let text = this.#match(SIGN);
    if (text !== '') kind = LITERALS.get(text)!;
    for (const [other, candidate] of PATTERNS) {
      const found = this.#match(candidate);
      if (found.length <= text.length) continue;
      text = found;
      kind = other;
    }
    if (kind === -1) {
      const beginning = at + this.#match(BEGINNING).length;
      const broken = this.#source.codePointAt(beginning);
      this.#at = beginning + (broken === undefined ? 0 : String.fromCodePoint(broken).length);
      this.#unknown(at, this.#source.slice(at, this.#at));
      return;
    }
    this.#at += text.length;
    this.#push(kind === WORD ? (LITERALS.get(text) ?? kind) : kind, text, at);
  }

  #match(candidate: RegExp): string {
    candidate.lastIndex = this.#at;
    return candidate.exec(this.#source)?.[0] ?? '';
  }

  #push(kind: number, text: string, at = this.#at): void {
    const token = { kind, text, at, index: this.#all.length };
    this.#all.push(token);
    if (!HIDDEN.has(kind)) this.#seen.push(token);
  }
}
