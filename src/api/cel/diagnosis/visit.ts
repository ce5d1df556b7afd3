/**
 * Makes an expression of the tree of a text, and tells what the grammar cannot know: reserved names, literals that do not
 * fit, arguments that a macro does not take. What is missing in the tree becomes a node that stands for nothing.
 */
import type { Environment } from '../declarations.ts';
import { expandMacro } from '../macros.ts';
import { BEFORE, NOWHERE, type Report } from '../report.ts';
import { call, type Expr, literal, logical, RESERVED, unspecified } from '../syntax.ts';
import { intLiteral, numberText, stringLiteral, uintLiteral } from '../tokens.ts';
import { BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT } from '../types.ts';
import { CelDouble } from '../values.ts';
import type { TreeNode, TreeToken } from './tree.ts';

/** Operators and selections inside one another. */
const MAX_DEPTH = 250;

/** Ends the visit. */
const TOO_DEEP = Symbol('too deep');

/** The expression; its faults are in the report. */
export function visitTree(start: TreeNode, environment: Environment, report: Report): Expr {
  try {
    return new Visitor(environment, report).expr(start.node('e'));
  } catch (error) {
    if (error !== TOO_DEEP) throw error;
    report.add(NOWHERE, 'max recursion depth exceeded');
    return unspecified(NOWHERE);
  }
}

class Visitor {
  readonly #environment: Environment;
  readonly #report: Report;
  #depth = 0;

  constructor(environment: Environment, report: Report) {
    this.#environment = environment;
    this.#report = report;
  }

  expr(from: TreeNode | undefined): Expr {
    const node = compound(from);
    if (node === undefined) return this.#unknown();
    switch (node.name) {
      case 'Expr':
      case 'Relation':
      case 'Calc':
      case 'Select':
      case 'MemberCall':
      case 'Index': {
        if (++this.#depth > MAX_DEPTH) throw TOO_DEEP;
        const expr = this.#deep(node);
        this.#depth--;
        return expr;
      }
      case 'Or':
        return this.#logical(node, '||');
      case 'And':
        return this.#logical(node, '&&');
      case 'Not':
        return this.#signed(node, '!_');
      case 'Negate':
        return this.#signed(node, '-_');
      case 'Ident':
      case 'GlobalCall':
        return this.#named(node);
      case 'List':
        return this.#list(node);
      case 'Map':
        return this.#map(node);
      case 'Struct':
        return this.#struct(node);
      case 'unary':
        return literal(node.at, STRING, '<<error>>');
      default:
        return this.#literal(node);
    }
  }

  #fault(at: number, message: string): Expr {
    this.#report.add(at, message);
    return unspecified(at);
  }

  /** A part that was not found: it is told only when nothing else was. */
  #unknown(): Expr {
    if (this.#report.empty) this.#report.add(NOWHERE, 'unknown parse element encountered: <<nil>>');
    return unspecified(BEFORE);
  }

  #deep(node: TreeNode): Expr {
    switch (node.name) {
      case 'Expr': {
        const condition = this.expr(node.node('e'));
        const yes = this.expr(node.node('yes'));
        const no = this.expr(node.node('no'));
        return this.#call(node.token('op')!.at, '_?_:_', [condition, yes, no]);
      }
      case 'Relation':
      case 'Calc': {
        const op = node.token('op')!;
        const left = this.expr(node.node('left'));
        const right = this.expr(node.node('right'));
        return this.#call(op.at, op.text === 'in' ? '@in' : `_${op.text}_`, [left, right]);
      }
      case 'Select':
        return this.#select(node);
      case 'MemberCall':
        return this.#memberCall(node);
      default:
        return this.#index(node);
    }
  }

  #call(at: number, name: string, args: readonly Expr[], target?: Expr): Expr {
    return expandMacro({ at, name, target, args }, this.#environment, this.#report) ?? call(at, name, args, target);
  }

  #logical(node: TreeNode, sign: '||' | '&&'): Expr {
    const terms = [this.expr(node.node('e'))];
    const ats: number[] = [];
    const rest = node.nodes('rest');
    for (const [index, op] of node.tokens('ops').entries()) {
      const next = rest[index];
      if (next === undefined) return this.#fault(node.at, `unexpected character, wanted '${sign}'`);
      terms.push(this.expr(next));
      ats.push(op.at);
    }
    return logical(sign, terms, ats);
  }

  #signed(node: TreeNode, name: string): Expr {
    const ops = node.tokens('ops');
    const operand = this.expr(node.node('e'));
    return ops.length % 2 === 0 ? operand : call(ops[0]!.at, name, [operand]);
  }

  #select(node: TreeNode): Expr {
    const operand = this.expr(node.node('left'));
    const id = node.node('id');
    const op = node.token('op');
    if (id === undefined || op === undefined) return unspecified(node.at);
    const field = this.#fieldName(id) ?? '';
    if (field === '') this.#report.add(id.at, 'unsupported ident kind');
    const optional = node.token('opt') !== undefined;
    if (optional && !this.#environment.optionals) return this.#fault(op.at, "unsupported syntax '.?'");
    return { op: 'select', at: op.at, operand, field, test: false, optional };
  }

  #fieldName(node: TreeNode | undefined): string | undefined {
    const text = node?.token('id')?.text;
    return node?.name === 'QuotedName' ? text?.slice(1, -1) : text;
  }

  #memberCall(node: TreeNode): Expr {
    const target = this.expr(node.node('left'));
    const id = node.token('id');
    if (id === undefined) return unspecified(node.at);
    return this.#call(node.token('open')?.at ?? BEFORE, id.text, this.#args(node), target);
  }

  #args(node: TreeNode): Expr[] {
    return (node.node('args')?.nodes('e') ?? []).map((arg) => this.expr(arg));
  }

  #index(node: TreeNode): Expr {
    const target = this.expr(node.node('left'));
    const op = node.token('op');
    if (op === undefined) return unspecified(node.at);
    const index = this.expr(node.node('index'));
    const optional = node.token('opt') !== undefined;
    if (optional && !this.#environment.optionals) return this.#fault(op.at, "unsupported syntax '[?'");
    return this.#call(op.at, optional ? '_[?_]' : '_[_]', [target, index]);
  }

  #named(node: TreeNode): Expr {
    const id = node.token('id');
    if (id === undefined) return unspecified(node.at);
    if (RESERVED.has(id.text)) return this.#fault(node.at, `reserved identifier: ${id.text}`);
    const name = node.token('dot') === undefined ? id.text : `.${id.text}`;
    if (node.name === 'Ident') return { op: 'ident', at: id.at, name };
    return this.#call(node.token('open')?.at ?? BEFORE, name, this.#args(node));
  }

  #optional(mark: TreeToken | undefined): boolean {
    if (mark !== undefined && !this.#environment.optionals) this.#report.add(mark.at, "unsupported syntax '?'");
    return mark !== undefined;
  }

  #list(node: TreeNode): Expr {
    const items = (node.node('items')?.nodes('items') ?? []).map((item) => ({
      value: this.expr(item.node('e')),
      optional: this.#optional(item.token('opt')),
    }));
    return { op: 'list', at: node.token('op')?.at ?? BEFORE, items };
  }

  #map(node: TreeNode): Expr {
    const list = node.node('entries');
    const entries = [];
    for (const [index, colon] of (list?.tokens('cols') ?? []).entries()) {
      const item = list!.nodes('keys')[index];
      const value = list!.nodes('values')[index];
      if (item === undefined || value === undefined) break;
      const optional = this.#optional(item.token('opt'));
      entries.push({ at: colon.at, key: this.expr(item.node('e')), value: this.expr(value), optional });
    }
    return { op: 'map', at: node.token('op')?.at ?? BEFORE, entries };
  }

  #struct(node: TreeNode): Expr {
    const path = node
      .tokens('ids')
      .map(({ text }) => text)
      .join('.');
    const list = node.node('fields');
    const fields = [];
    for (const [index, field] of (list?.nodes('fields') ?? []).entries()) {
      const colon = list!.tokens('cols')[index];
      const value = list!.nodes('values')[index];
      if (colon === undefined || value === undefined) break;
      const optional = this.#optional(field.token('opt'));
      const name = this.#fieldName(field.node('id'));
      if (name === undefined) this.#report.add(list!.at, 'unsupported ident kind');
      else fields.push({ at: colon.at, name, value: this.expr(value), optional });
    }
    const name = node.token('dot') === undefined ? path : `.${path}`;
    return { op: 'struct', at: node.token('op')?.at ?? BEFORE, name, fields };
  }

  #literal(node: TreeNode): Expr {
    const text = node.token('tok')?.text ?? '';
    const { at } = node;
    const minus = node.token('sign') !== undefined;
    switch (node.name) {
      case 'Int': {
        const digits = numberText(text);
        const value = digits === undefined ? undefined : intLiteral(minus ? -digits : digits);
        return value === undefined ? this.#fault(at, 'invalid int literal') : literal(at, INT, value);
      }
      case 'Uint': {
        const digits = numberText(text.slice(0, -1));
        const value = digits === undefined ? undefined : uintLiteral(digits);
        return value === undefined ? this.#fault(at, 'invalid uint literal') : literal(at, UINT, value);
      }
      case 'Double': {
        const value = Number(minus ? `-${text}` : text);
        if (!Number.isFinite(value)) return this.#fault(at, 'invalid double literal');
        return literal(at, DOUBLE, new CelDouble(value));
      }
      case 'String':
      case 'Bytes': {
        const bytes = node.name === 'Bytes';
        const value = stringLiteral(text);
        if (typeof value === 'object' && 'fault' in value) this.#report.add(at, value.fault);
        return literal(at, bytes ? BYTES : STRING, value);
      }
      case 'True':
        return literal(at, BOOL, true);
      case 'False':
        return literal(at, BOOL, false);
      case 'Null':
        return literal(at, NULL, null);
      default:
        return unspecified(BEFORE);
    }
  }
}

/** The first node on the way down that is more than a step to the next. */
function compound(from: TreeNode | undefined): TreeNode | undefined {
  let node = from;
  for (;;) {
    switch (node?.name) {
      case 'Expr':
      case 'Relation':
      case 'Calc':
        if (node.token('op') !== undefined) return node;
        break;
      case 'Or':
      case 'And':
        if (node.tokens('ops').length > 0) return node;
        break;
      case 'MemberExpr':
      case 'PrimaryExpr':
      case 'Nested':
      case 'Constant':
        break;
      default:
        return node;
    }
    node = node.node('e');
  }
}
