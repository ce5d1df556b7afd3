/**
 * Turns a checked tree into closures. Each closure evaluates its node in a frame and counts the cost as cel-go's cost
 * tracker does: 1 for a name and for each step of a path, 10, 30 and 40 for making a list, a map, an object. What a call or
 * a literal costs is counted when a part of it fails, too; a literal's is counted first.
 */

import { compileCall } from './compile-call.ts';
import { constantOf } from './compile-constant.ts';
import { compileFold } from './compile-fold.ts';
import type { Binding, Code, NodeCompiler } from './compile-frame.ts';
import { compilePath, isPath } from './compile-path.ts';
import { LIST_COST, MAP_COST, STRUCT_COST } from './cost-models.ts';
import type { Environment } from './declarations.ts';
import { CelEvaluationError, isFailure } from './errors.ts';
import { mapReplace } from './map-access.ts';
import type { Bind, Expr, Ident, ListLiteral, MapLiteral, StructLiteral } from './syntax.ts';
import type { CelType } from './types.ts';
import { CelMap, CelOptional, CelStruct, fromJson } from './values.ts';

/** Compiles a checked expression; `slots` is the length of its `Frame.values`, `bound` what goes into the first of them. */
export function compileExpression(
  root: Expr,
  environment: Environment,
  variables: Readonly<Record<string, CelType>>,
): Pick<Compiler, 'slots' | 'bound'> & { readonly code: Code } {
  const compiler = new Compiler(environment, variables);
  const code = compiler.compile(root);
  return { code, slots: compiler.slots, bound: compiler.bound };
}

class Compiler implements NodeCompiler {
  readonly bound: Binding[] = [];
  slots = 0;
  readonly environment: Environment;
  readonly #variables: Readonly<Record<string, CelType>>;
  readonly #locals: { readonly name: string; readonly slot: number; readonly lazy: boolean }[] = [];

  constructor(environment: Environment, variables: Readonly<Record<string, CelType>>) {
    this.environment = environment;
    this.#variables = variables;
  }

  compile(expr: Expr): Code {
    if (isPath(expr)) return compilePath(this, expr, 1);
    switch (expr.op) {
      case 'literal':
        return always(expr);
      case 'ident':
      case 'select':
        return always((expr.op === 'ident' ? expr : expr.qualified!).constant!);
      case 'call':
        return compileCall(this, expr);
      case 'list':
        return this.#list(expr);
      case 'map':
        return this.#map(expr);
      case 'struct':
        return this.#struct(expr);
      case 'fold':
        return compileFold(this, expr);
      case 'bind':
        return this.#bind(expr);
    }
  }

  /** Compiles `run` with local names in slots of their own. */
  withLocals<T>(names: readonly string[], lazy: boolean, run: (slots: readonly number[]) => T): T {
    const slots = names.map(() => this.slots++);
    names.forEach((name, i) => {
      this.#locals.push({ name, slot: slots[i]!, lazy });
    });
    const result = run(slots);
    this.#locals.length -= names.length;
    return result;
  }

  /** Reads a variable or a local name; `cost` is 0 where cel-go charges the path that it begins, not the name. */
  name(expr: Ident, cost: 0 | 1): Code {
    const local = this.#locals.findLast(({ name }) => name === expr.name);
    if (local?.lazy === true) return lazyLocal(local.slot, cost);
    const name = expr.name.replace(/^\./, '');
    const slot = local?.slot ?? this.#slot(name);
    return (frame) => {
      frame.cost += cost;
      const value = frame.values[slot];
      return value === undefined ? new CelEvaluationError(`no such attribute(s): ${name}`) : value;
    };
  }

  #slot(name: string): number {
    const known = this.bound.find((entry) => entry.name === name);
    if (known !== undefined) return known.slot;
    const slot = this.slots++;
    this.bound.push({ name, slot, wrap: bindingWrap(this.#variables[name]!) });
    return slot;
  }

  /** What an entry of a literal gives; undefined for an optional one that is none. */
  #entry({ value, optional }: { readonly value: Expr; readonly optional: boolean }): Code {
    const code = this.compile(value);
    return optional ? (frame) => presentValue(code(frame)) : code;
  }

  #list(expr: ListLiteral): Code {
    const items = expr.items.map((item) => this.#entry(item));
    const folded = constantOf(this.environment, expr);
    if (folded !== undefined) return always(folded);
    return (frame) => {
      frame.cost += LIST_COST;
      const list: unknown[] = [];
      for (const item of items) {
        const value = item(frame);
        if (isFailure(value)) return value;
        if (value !== undefined) list.push(value);
      }
      return list;
    };
  }

  #map(expr: MapLiteral): Code {
    const entries = expr.entries.map((entry) => ({ key: this.compile(entry.key), value: this.#entry(entry) }));
    const folded = constantOf(this.environment, expr);
    if (folded !== undefined) return always(folded);
    return (frame) => {
      frame.cost += MAP_COST;
      const map = new CelMap();
      for (const entry of entries) {
        const key = entry.key(frame);
        if (isFailure(key)) return key;
        const value = entry.value(frame);
        if (isFailure(value)) return value;
        // The last of equal keys wins.
        if (value !== undefined) mapReplace(map, key, value);
      }
      return map;
    };
  }

  #struct({ name, fields }: StructLiteral): Code {
    const entries = fields.map((field) => ({ name: field.name, code: this.#entry(field) }));
    return (frame) => {
      frame.cost += STRUCT_COST;
      const values = new Map<string, unknown>();
      for (const entry of entries) {
        const value = entry.code(frame);
        if (isFailure(value)) return value;
        if (value !== undefined) values.set(entry.name, value);
      }
      return new CelStruct(name, values);
    };
  }

  #bind(expr: Bind): Code {
    const init = this.compile(expr.init);
    return this.withLocals([expr.name], true, ([slot]) => {
      const body = this.compile(expr.body);
      return (frame) => {
        frame.values[slot!] = new Pending(init);
        return body(frame);
      };
    });
  }
}

/** A constant: it costs nothing. */
const always =
  ({ value }: { readonly value: unknown }): Code =>
  () =>
    value;

/** What makes a CEL value of a bound value. */
function bindingWrap(type: CelType): (raw: unknown) => unknown {
  if (type.kind !== 'optional') return type.wrap ?? fromJson;
  const inner = bindingWrap(type.params[0]!);
  return (raw) => (raw instanceof CelOptional && raw.value !== undefined ? new CelOptional(inner(raw.value)) : raw);
}

/** What a `bind` stands for until it is first used. */
class Pending {
  readonly init: Code;
  constructor(init: Code) {
    this.init = init;
  }
}

function lazyLocal(slot: number, cost: 0 | 1): Code {
  return (frame) => {
    frame.cost += cost;
    let value = frame.values[slot];
    if (value instanceof Pending) {
      value = value.init(frame);
      frame.values[slot] = value;
    }
    return value;
  };
}

/** The value of an optional, undefined for none; a failure when it is one, and when it is no optional. */
function presentValue(value: unknown): unknown {
  if (value instanceof CelOptional) return value.value;
  return isFailure(value) ? value : new CelEvaluationError('cannot initialize optional entry from non-optional value');
}
