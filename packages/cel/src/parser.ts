/** Parses an expression into a syntax tree; macros are expanded on the way (`macros.ts`). */
import type { Environment } from './declarations.ts';
import { expandMacro } from './macros.ts';
import { NOWHERE, readSource, SourceError } from './report.ts';
import { call, children, type Expr, literal, logical } from './syntax.ts';
import { type Token, tokenize } from './tokens.ts';
import { BOOL, BYTES, DOUBLE, INT, NULL, RESERVED, STRING, UINT } from './types.ts';
import { CelDouble, CelUint, intFromBigInt, MAX_INT, MAX_UINT, MIN_INT } from './values.ts';

/** Deepest nesting of a text, and depth of its tree: cel-go's limits. */
const MAX_DEPTH = 250;
/** Longest expression, in code points: cel-go's default. */
const MAX_SOURCE = 100_000;

/** Binary operators by rising binding strength. */
const LEVELS: readonly (readonly string[])[] = [
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** @throws CelCompileError with the first syntax error and its place */
export const parseExpression = (source: string, environment: Environment): Expr =>
  readSource(source, () => {
    const size = source.length > MAX_SOURCE ? [...source].length : source.length;
    if (size > MAX_SOURCE) {
      throw new SourceError(NOWHERE, `expression code point size exceeds limit: size: ${size}, limit ${MAX_SOURCE}`);
    }
    const expr = new Parser(tokenize(source), environment).whole();
    if (isDeeperThan(expr, MAX_DEPTH)) throw new SourceError(NOWHERE, 'max recursion depth exceeded');
    return expr;
  });

/** A long chain (`1 + 1 + ...`) is a deep tree, and everything after the parser recurses. */
function isDeeperThan(root: Expr, limit: number): boolean {
  let level: readonly Expr[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true;
    // Shared nodes (macros repeat their target) count once.
    level = [...new Set(level.flatMap(children))];
  }
  return false;
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #environment: Environment;
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], environment: Environment) {
    this.#tokens = tokens;
    this.#environment = environment;
  }

  whole(): Expr {
    const expr = this.#expr();
    if (this.#peek().kind !== 'end') this.#unexpected(this.#peek());
    return expr;
  }

  #peek(): Token {
    return this.#tokens[this.#next]!;
  }

  #take(): Token {
    return this.#tokens[this.#next++]!;
  }

  #is(sign: string): boolean {
    const token = this.#peek();
    return (token.kind === 'sign' || token.kind === 'word') && token.text === sign;
  }

  #accept(sign: string): Token | undefined {
    return this.#is(sign) ? this.#take() : undefined;
  }

  #expect(sign: string): Token {
    return this.#accept(sign) ?? this.#unexpected(this.#peek(), `'${sign}'`);
  }

  /** Ends the parse at a token that cannot stand there. */
  #unexpected(token: Token, expected?: string): never {
    if (token.kind === 'invalid') throw token.value;
    const found = token.kind === 'end' ? 'end of expression' : `'${token.text}'`;
    const wanted = expected === undefined ? `unexpected ${found}` : `expected ${expected} but found ${found}`;
    throw new SourceError(token.at, `Syntax error: ${wanted}`);
  }

  #expr(): Expr {
    if (++this.#depth > MAX_DEPTH) throw new SourceError(NOWHERE, `expression recursion limit exceeded: ${MAX_DEPTH}`);
    const condition = this.#or();
    const question = this.#accept('?');
    let expr = condition;
    if (question !== undefined) {
      const yes = this.#or();
      this.#expect(':');
      expr = call(question.at, '_?_:_', [condition, yes, this.#expr()]);
    }
    this.#depth--;
    return expr;
  }

  #or(): Expr {
    return this.#chain('||', () => this.#chain('&&', () => this.#binary(0)));
  }

  #chain(sign: '||' | '&&', operand: () => Expr): Expr {
    const terms = [operand()];
    const ats: number[] = [];
    for (let token = this.#accept(sign); token !== undefined; token = this.#accept(sign)) {
      ats.push(token.at);
      terms.push(operand());
    }
    return logical(sign, terms, ats);
  }

  #binary(level: number): Expr {
    const signs = LEVELS[level];
    if (signs === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const token = this.#peek();
      if ((token.kind !== 'sign' && token.kind !== 'word') || !signs.includes(token.text)) return left;
      this.#take();
      left = call(token.at, token.text === 'in' ? '@in' : `_${token.text}_`, [left, this.#binary(level + 1)]);
    }
  }

  #unary(): Expr {
    const first = this.#peek();
    if (!this.#is('!') && !this.#is('-')) return this.#member();
    let count = 0;
    while (this.#accept(first.text) !== undefined) count++;
    // One sign belongs to the literal: -9223372036854775808 is a number. Of several, none does.
    if (first.text === '-' && count === 1 && this.#atNumber()) return this.#member(first.at);
    const operand = this.#operand();
    return count % 2 === 0 ? operand : call(first.at, `${first.text}_`, [operand]);
  }

  /** What `!` or `-` stand before: they do not mix, but for the sign of a number. */
  #operand(): Expr {
    const sign = this.#accept('-');
    if (sign !== undefined && this.#atNumber()) return this.#member(sign.at);
    if (sign !== undefined || this.#is('!')) this.#unexpected(sign ?? this.#peek());
    return this.#member();
  }

  #atNumber(): boolean {
    const { kind } = this.#peek();
    return kind === 'int' || kind === 'double';
  }

  /** `minus`: where the sign of the number stands that comes. */
  #member(minus?: number): Expr {
    let expr = this.#primary(minus);
    for (;;) {
      const token = this.#peek();
      if (!this.#is('.') && !this.#is('[')) return expr;
      this.#take();
      const optional = this.#accept('?') !== undefined;
      if (token.text === '[') {
        const index = this.#expr();
        this.#expect(']');
        expr = call(token.at, optional ? '_[?_]' : '_[_]', [expr, index]);
      } else {
        expr = this.#selection(expr, token.at, optional);
      }
    }
  }

  #selection(operand: Expr, at: number, optional: boolean): Expr {
    const name = this.#fieldName();
    const open = optional || name.kind === 'quoted' ? undefined : this.#accept('(');
    if (open === undefined) return { op: 'select', at, operand, field: name.text, test: false, optional };
    return this.#call(open.at, name.text, operand);
  }

  #fieldName(): Token {
    const name = this.#take();
    return name.kind === 'name' || name.kind === 'quoted' ? name : this.#unexpected(name, 'a field name');
  }

  #arguments(): Expr[] {
    const args: Expr[] = [];
    if (this.#accept(')') !== undefined) return args;
    do args.push(this.#expr());
    while (this.#accept(',') !== undefined);
    this.#expect(')');
    return args;
  }

  /** What a macro makes of a call, or the call itself. */
  #call(at: number, name: string, target: Expr | undefined): Expr {
    const args = this.#arguments();
    return expandMacro({ at, name, target, args }, this.#environment) ?? call(at, name, args, target);
  }

  #primary(minus: number | undefined): Expr {
    const token = this.#peek();
    if (token.kind === 'name') return this.#named('');
    if (token.kind === 'sign') return this.#bracketed();
    this.#take();
    const at = minus ?? token.at;
    switch (token.kind) {
      case 'int': {
        const value = BigInt(token.text) * (minus === undefined ? 1n : -1n);
        if (value < MIN_INT || value > MAX_INT) throw new SourceError(at, 'invalid int literal');
        return literal(at, INT, intFromBigInt(value));
      }
      case 'uint': {
        const value = BigInt(token.text);
        if (value > MAX_UINT) throw new SourceError(at, 'invalid uint literal');
        return literal(at, UINT, new CelUint(value));
      }
      case 'double': {
        const value = Number(token.text) * (minus === undefined ? 1 : -1);
        if (!Number.isFinite(value)) throw new SourceError(at, 'invalid double literal');
        return literal(at, DOUBLE, new CelDouble(value));
      }
      case 'string':
        return literal(at, STRING, token.value);
      case 'bytes':
        return literal(at, BYTES, token.value);
      case 'word':
        if (token.text === 'in') return this.#unexpected(token);
        return token.text === 'null' ? literal(at, NULL, null) : literal(at, BOOL, token.text === 'true');
      default:
        return this.#unexpected(token);
    }
  }

  #bracketed(): Expr {
    const token = this.#peek();
    if (this.#accept('(') !== undefined) {
      const expr = this.#expr();
      this.#expect(')');
      return expr;
    }
    if (this.#accept('[') !== undefined) return this.#list(token.at);
    if (this.#accept('{') !== undefined) return this.#map(token.at);
    if (this.#accept('.') !== undefined) return this.#named('.');
    return this.#unexpected(token);
  }

  #named(dot: string): Expr {
    const token = this.#take();
    if (token.kind !== 'name') this.#unexpected(token, 'a name');
    const struct = this.#structName(token, dot);
    if (struct !== undefined) return struct;
    if (RESERVED.has(token.text)) throw new SourceError(token.at, `reserved identifier: ${token.text}`);
    const name = dot + token.text;
    const open = this.#accept('(');
    return open === undefined ? { op: 'ident', at: token.at, name } : this.#call(open.at, name, undefined);
  }

  /** `Name{`, `a.b.Name{`: only names joined by dots may stand before the brace. */
  #structName(first: Token, dot: string): Expr | undefined {
    let name = dot + first.text;
    let ahead = this.#next;
    while (this.#tokens[ahead]?.text === '.' && this.#tokens[ahead + 1]?.kind === 'name') {
      name += `.${this.#tokens[ahead + 1]!.text}`;
      ahead += 2;
    }
    const open = this.#tokens[ahead];
    if (open?.kind !== 'sign' || open.text !== '{') return undefined;
    this.#next = ahead + 1;
    const fields = this.#entries('}', (optional) => {
      const field = this.#fieldName();
      const colon = this.#expect(':');
      return { at: colon.at, name: field.text, value: this.#expr(), optional };
    });
    return { op: 'struct', at: open.at, name, fields };
  }

  #list(at: number): Expr {
    const items = this.#entries(']', (optional) => ({ value: this.#expr(), optional }));
    return { op: 'list', at, items };
  }

  #map(at: number): Expr {
    const entries = this.#entries('}', (optional) => {
      const key = this.#expr();
      const colon = this.#expect(':');
      return { at: colon.at, key, value: this.#expr(), optional };
    });
    return { op: 'map', at, entries };
  }

  /** Comma-separated, with an optional comma at the end. */
  #entries<T>(close: string, entry: (optional: boolean) => T): T[] {
    const entries: T[] = [];
    // `[,]` is what the grammar makes of an optional list and an optional comma.
    if (this.#accept(',') !== undefined) {
      this.#expect(close);
      return entries;
    }
    while (this.#accept(close) === undefined) {
      entries.push(entry(this.#accept('?') !== undefined));
      if (this.#accept(',') === undefined) {
        this.#expect(close);
        break;
      }
    }
    return entries;
  }
}
