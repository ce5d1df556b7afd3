/**
 * Parses an expression into a syntax tree; macros are expanded on the way (`macros.ts`). This is the fast way, for texts
 * without a fault. At the first doubt it gives up, and `diagnosis/` reads the text again to tell every fault of it.
 */
import type { Environment } from './declarations.ts';
import { parseWithRecovery } from './diagnosis/recovering-parser.ts';
import { visitTree } from './diagnosis/visit.ts';
import { expandMacro } from './macros.ts';
import { NOWHERE, Report } from './report.ts';
import { call, children, type Expr, literal, logical, RESERVED, unspecified } from './syntax.ts';
import { intLiteral, type Token, tokenize, uintLiteral } from './tokens.ts';
import { BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT } from './types.ts';
import { CelDouble } from './values.ts';

/** Nesting that is certainly allowed: cel-go's limit is 250 of one rule of the grammar, which a level enters up to thrice. */
const SAFE_DEPTH = 80;
/** Depth of a tree that is certainly allowed. */
const SAFE_TREE = 240;
/** Longest expression, in code points: cel-go's default. */
const MAX_SOURCE = 100_000;

/** Binary operators by rising binding strength. */
const LEVELS: readonly (readonly string[])[] = [
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** Ends the parse: the text has a fault, or may have one. */
const STOP = Symbol('stop');

/** @throws CelCompileError with every syntax error that was found */
export function parseExpression(source: string, environment: Environment): Expr {
  const report = new Report(source);
  const size = source.length > MAX_SOURCE ? [...source].length : source.length;
  if (size > MAX_SOURCE) {
    report.add(NOWHERE, `expression code point size exceeds limit: size: ${size}, limit ${MAX_SOURCE}`);
    report.throwIfAny();
  }
  return parseFast(source, environment) ?? diagnose(source, environment, report);
}

/** Undefined: the text has a fault, or comes near a limit. */
function parseFast(source: string, environment: Environment): Expr | undefined {
  const tokens = tokenize(source);
  if (tokens === undefined) return undefined;
  const report = new Report(source);
  try {
    const expr = new Parser(tokens, environment, report).whole();
    return report.empty && !isDeeperThan(expr, SAFE_TREE) ? expr : undefined;
  } catch (error) {
    if (error !== STOP) throw error;
    return undefined;
  }
}

function diagnose(source: string, environment: Environment, report: Report): Expr {
  const tree = parseWithRecovery(source, (at, message) => report.add(at ?? NOWHERE, message));
  const expr = tree === undefined ? unspecified(NOWHERE) : visitTree(tree, environment, report);
  report.throwIfAny();
  return expr;
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
    if (token.kind !== 'end') throw STOP;
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
    if (token === undefined) throw STOP;
    return token;
  }

  #expr(): Expr {
    if (++this.#depth > SAFE_DEPTH) throw STOP;
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
    if (sign !== undefined || this.#is('!')) throw STOP;
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
      const optional = this.#accept('?');
      if (optional !== undefined && !this.#environment.optionals) throw STOP;
      if (token.text === '[') {
        const index = this.#expr();
        this.#expect(']');
        expr = call(token.at, optional === undefined ? '_[_]' : '_[?_]', [expr, index]);
      } else {
        expr = this.#selection(expr, token.at, optional !== undefined);
      }
    }
  }

  #selection(operand: Expr, at: number, optional: boolean): Expr {
    const name = this.#take();
    if (name.kind !== 'name' && name.kind !== 'quoted') throw STOP;
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

  #primary(minus: number | undefined): Expr {
    const token = this.#peek();
    switch (token.kind) {
      case 'int': {
        this.#take();
        const value = intLiteral(minus !== undefined ? -(token.value as bigint) : (token.value as bigint));
        if (value === undefined) throw STOP;
        return literal(minus ?? token.at, INT, value);
      }
      case 'uint': {
        this.#take();
        const value = uintLiteral(token.value as bigint);
        if (value === undefined) throw STOP;
        return literal(token.at, UINT, value);
      }
      case 'double':
        this.#take();
        return literal(minus ?? token.at, DOUBLE, minus === undefined ? token.value : negated(token.value));
      case 'string':
        this.#take();
        return literal(token.at, STRING, token.value);
      case 'bytes':
        this.#take();
        return literal(token.at, BYTES, token.value);
      case 'word':
        return this.#word();
      case 'name':
        return this.#named('');
      case 'sign':
        return this.#bracketed();
      default:
        throw STOP;
    }
  }

  #word(): Expr {
    const token = this.#peek();
    if (token.text === 'in') throw STOP;
    this.#take();
    if (token.text === 'null') return literal(token.at, NULL, null);
    return literal(token.at, BOOL, token.text === 'true');
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
    throw STOP;
  }

  #named(dot: string): Expr {
    const token = this.#take();
    if (token.kind !== 'name') throw STOP;
    const struct = this.#structName(token, dot);
    if (struct !== undefined) return struct;
    if (RESERVED.has(token.text)) throw STOP;
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
      if (field.kind !== 'name' && field.kind !== 'quoted') throw STOP;
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
    if (mark !== undefined && !this.#environment.optionals) throw STOP;
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

const negated = (value: unknown): unknown => new CelDouble(-(value as CelDouble).value);
