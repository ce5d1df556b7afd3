/** Parses an expression into a syntax tree; macros are expanded on the way (`macros.ts`). */
import type { Environment } from './declarations.ts';
import { expandMacro } from './macros.ts';
import { NOWHERE, Report } from './report.ts';
import { children, type Expr } from './syntax.ts';
import { intLiteral, type Token, tokenize, uintLiteral } from './tokens.ts';
import { BOOL, BYTES, type CelType, DOUBLE, INT, NULL, STRING, UINT } from './types.ts';
import { CelDouble } from './values.ts';

/** Deepest nesting; cel-go's parser allows 250. */
const MAX_DEPTH = 250;
/** Longest expression, in code points: cel-go's default. */
const MAX_SOURCE = 100_000;

const RESERVED = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(
    ' ',
  ),
);
const OPERAND =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/** Binary operators by rising binding strength. */
const LEVELS: readonly (readonly string[])[] = [
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** Ends the parse: the fault is in the report. */
const STOP = Symbol('stop');

/** @throws CelCompileError with every syntax error that was found */
export function parseExpression(source: string, environment: Environment): Expr {
  const report = new Report(source);
  if (source.length > MAX_SOURCE) {
    report.add(0, `expression code point size exceeds limit: size: ${source.length}, limit ${MAX_SOURCE}`);
    report.throwIfAny();
  }
  const parser = new Parser(tokenize(source, report), environment, report);
  try {
    const expr = parser.whole();
    report.throwIfAny();
    if (isDeeperThan(expr, MAX_DEPTH)) {
      report.add(NOWHERE, 'max recursion depth exceeded');
      report.throwIfAny();
    }
    return expr;
  } catch (error) {
    if (error !== STOP) throw error;
    report.throwIfAny();
    throw new Error('the parser stopped without a reason');
  }
}

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
  readonly #report: Report;
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], environment: Environment, report: Report) {
    this.#tokens = tokens;
    this.#environment = environment;
    this.#report = report;
  }

  whole(): Expr {
    const expr = this.#expr();
    const token = this.#peek();
    if (token.kind !== 'end') {
      const kind = this.#tokens[this.#next + 1]!.kind === 'end' ? 'extraneous' : 'mismatched';
      this.#fail(token, `Syntax error: ${kind} input '${token.text}' expecting <EOF>`);
    }
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
    const token = this.#accept(sign);
    if (token !== undefined) return token;
    const found = this.#peek();
    return this.#fail(
      found,
      sign === ':'
        ? `Syntax error: mismatched input '${found.text}' expecting ':'`
        : `Syntax error: missing '${sign}' at '${found.text}'`,
    );
  }

  #fail(token: Token, message: string): never {
    this.#report.add(token.at, message);
    throw STOP;
  }

  #expr(): Expr {
    if (++this.#depth > MAX_DEPTH) {
      this.#fail(this.#peek(), `expression recursion limit exceeded: ${MAX_DEPTH}`);
    }
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

  /** `a && b && c` becomes a balanced tree, as in cel-go: a long chain stays shallow. */
  #chain(sign: '||' | '&&', operand: () => Expr): Expr {
    const terms = [operand()];
    const ats: number[] = [];
    for (let token = this.#accept(sign); token !== undefined; token = this.#accept(sign)) {
      ats.push(token.at);
      terms.push(operand());
    }
    const balance = (low: number, high: number): Expr => {
      if (low === high) return terms[low]!;
      const middle = Math.floor((low + high) / 2);
      return call(ats[middle]!, `_${sign}_`, [balance(low, middle), balance(middle + 1, high)]);
    };
    return balance(0, terms.length - 1);
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
    if (first.text === '-' && count === 1 && this.#atNumber()) return this.#member(true);
    const operand = this.#operand();
    return count % 2 === 0 ? operand : call(first.at, `${first.text}_`, [operand]);
  }

  /** What `!` or `-` stand before: they do not mix, but for the sign of a number. */
  #operand(): Expr {
    const sign = this.#accept('-');
    if (sign !== undefined && this.#atNumber()) return this.#member(true);
    const wrong = sign !== undefined || this.#is('!') ? this.#peek() : undefined;
    return wrong === undefined
      ? this.#member()
      : this.#fail(wrong, `Syntax error: no viable alternative at input '-${wrong.text}'`);
  }

  #atNumber(): boolean {
    const { kind } = this.#peek();
    return kind === 'int' || kind === 'double';
  }

  #member(negative = false): Expr {
    let expr = this.#primary(negative);
    const depth = this.#depth;
    for (;;) {
      const token = this.#peek();
      if (!this.#is('.') && !this.#is('[')) break;
      this.#take();
      const optional = this.#accept('?');
      if (optional !== undefined && !this.#environment.optionals) {
        this.#report.add(token.at, `unsupported syntax '${token.text}?'`);
      }
      if (token.text === '[') {
        const index = this.#expr();
        this.#expect(']');
        expr = call(token.at, optional === undefined ? '_[_]' : '_[?_]', [expr, index]);
      } else {
        expr = this.#selection(expr, token.at, optional !== undefined);
      }
      if (++this.#depth > MAX_DEPTH) this.#fail(token, `expression recursion limit exceeded: ${MAX_DEPTH}`);
    }
    this.#depth = depth;
    return expr;
  }

  #selection(operand: Expr, at: number, optional: boolean): Expr {
    const name = this.#take();
    if (name.kind !== 'name' && name.kind !== 'quoted') {
      const found = name.kind === 'word' ? `mismatched input '${name.text}' expecting IDENTIFIER` : undefined;
      this.#fail(name, `Syntax error: ${found ?? `no viable alternative at input '.${name.text}'`}`);
    }
    const open = optional || name.kind === 'quoted' ? undefined : this.#accept('(');
    if (open === undefined) return { op: 'select', at, operand, field: name.text, test: false, optional };
    const args = this.#arguments();
    return this.#macro(open.at, name.text, operand, args) ?? call(open.at, name.text, args, operand);
  }

  #arguments(): Expr[] {
    const args: Expr[] = [];
    if (this.#accept(')') !== undefined) return args;
    do args.push(this.#expr());
    while (this.#accept(',') !== undefined);
    this.#expect(')');
    return args;
  }

  #macro(at: number, name: string, target: Expr | undefined, args: readonly Expr[]): Expr | undefined {
    return expandMacro({ at, name, target, args }, this.#environment, this.#report);
  }

  #primary(negative: boolean): Expr {
    const token = this.#peek();
    switch (token.kind) {
      case 'int': {
        this.#take();
        const value = intLiteral(negative ? -(token.value as bigint) : (token.value as bigint));
        if (value === undefined) this.#report.add(token.at, 'invalid int literal');
        return literal(token, INT, value ?? 0);
      }
      case 'uint': {
        this.#take();
        const value = uintLiteral(token.value as bigint);
        if (value === undefined) this.#report.add(token.at, 'invalid uint literal');
        return literal(token, UINT, value);
      }
      case 'double':
        this.#take();
        return literal(token, DOUBLE, negative ? negated(token.value) : token.value);
      case 'string':
        this.#take();
        return literal(token, STRING, token.value);
      case 'bytes':
        this.#take();
        return literal(token, BYTES, token.value);
      case 'word':
        return this.#word();
      case 'name':
        return this.#named('');
      case 'sign':
        return this.#bracketed();
      default:
        return this.#unexpected(token);
    }
  }

  #word(): Expr {
    const token = this.#peek();
    if (token.text === 'in') return this.#unexpected(token);
    this.#take();
    if (token.text === 'null') return literal(token, NULL, null);
    return literal(token, BOOL, token.text === 'true');
  }

  /** As ANTLR: a token too many is named and skipped when an operand follows it. */
  #unexpected(token: Token): Expr {
    const after = this.#tokens[this.#next + 1];
    if (after === undefined || !startsOperand(after)) {
      return this.#fail(token, `Syntax error: mismatched input '${token.text}' expecting ${OPERAND}`);
    }
    this.#report.add(token.at, `Syntax error: extraneous input '${token.text}' expecting ${OPERAND}`);
    this.#take();
    return this.#member();
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
    if (token.kind !== 'name') {
      return this.#fail(token, `Syntax error: no viable alternative at input '.${token.text}'`);
    }
    const struct = this.#structName(token, dot);
    if (struct !== undefined) return struct;
    if (RESERVED.has(token.text)) this.#report.add(token.at, `reserved identifier: ${token.text}`);
    const name = dot + token.text;
    const open = this.#accept('(');
    if (open === undefined) return { op: 'ident', at: token.at, name };
    const args = this.#arguments();
    return this.#macro(open.at, name, undefined, args) ?? call(open.at, name, args);
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
    const fields = this.#entries('}', () => {
      const optional = this.#optionalMark();
      const field = this.#take();
      if (field.kind !== 'name' && field.kind !== 'quoted') {
        this.#fail(field, `Syntax error: mismatched input '${field.text}' expecting {'}', IDENTIFIER}`);
      }
      const colon = this.#expect(':');
      return { at: colon.at, name: field.text, value: this.#expr(), optional };
    });
    return { op: 'struct', at: open.at, name, fields };
  }

  #list(at: number): Expr {
    const items = this.#entries(']', () => {
      const optional = this.#optionalMark();
      return { value: this.#expr(), optional };
    });
    return { op: 'list', at, items };
  }

  #map(at: number): Expr {
    const entries = this.#entries('}', () => {
      const optional = this.#optionalMark();
      const key = this.#expr();
      const colon = this.#expect(':');
      return { at: colon.at, key, value: this.#expr(), optional };
    });
    return { op: 'map', at, entries };
  }

  #optionalMark(): boolean {
    const mark = this.#accept('?');
    if (mark !== undefined && !this.#environment.optionals) this.#report.add(mark.at, "unsupported syntax '?'");
    return mark !== undefined;
  }

  /** Comma-separated, with an optional comma at the end. */
  #entries<T>(close: string, entry: () => T): T[] {
    const entries: T[] = [];
    while (this.#accept(close) === undefined) {
      entries.push(entry());
      if (this.#accept(',') === undefined) {
        this.#expect(close);
        break;
      }
    }
    return entries;
  }
}

const startsOperand = ({ kind, text }: Token): boolean =>
  kind === 'sign'
    ? ['[', '{', '(', '.', '-', '!'].includes(text)
    : kind === 'word'
      ? text !== 'in'
      : kind !== 'end' && kind !== 'quoted';

const literal = (token: Token, literalType: CelType, value: unknown): Expr => ({
  op: 'literal',
  at: token.at,
  value,
  literalType,
});

const negated = (value: unknown): unknown => new CelDouble(-(value as CelDouble).value);

/** A call of a function or an operator. */
export const call = (at: number, name: string, args: readonly Expr[], target?: Expr): Expr => ({
  op: 'call',
  at,
  name,
  target,
  args,
});
