/**
 * Turns a checked tree into closures. Each closure evaluates its node in a frame and counts the cost as cel-go's cost
 * tracker does: 1 for a name and for each step of a path, 10, 30 and 40 for making a list, a map, an object. What a call or
 * a literal costs is counted when a part of it fails, too.
 */

import { compileCall } from './compile-call.ts';
import { constantOf } from './compile-constant.ts';
import { compileFold } from './compile-fold.ts';
import type { Binding, Code, Frame, NodeCompiler } from './compile-frame.ts';
import { compilePath, isPath } from './compile-path.ts';
import { LIST_COST, MAP_COST, STRUCT_COST } from './cost-models.ts';
import type { Environment } from './declarations.ts';
import { CelEvaluationError, isFailure } from './errors.ts';
import { mapReplace } from './map-access.ts';
import type { Bind, Expr, Ident, ListLiteral, MapLiteral, StructLiteral } from './syntax.ts';
import type { CelType } from './types.ts';
import { CelMap, CelOptional, CelStruct, fromJson } from './values.ts';

export interface CompiledExpression {
  readonly code: Code;
  /** Length of `Frame.values`. */
  readonly slots: number;
  readonly bound: readonly Binding[];
}

/** Compiles a checked expression. */
export function compileExpression(
  root: Expr,
  environment: Environment,
  variables: Readonly<Record<string, CelType>>,
): CompiledExpression {
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
      case 'literal': {
        const { value } = expr;
        return () => value;
      }
      case 'ident':
      case 'select':
        return namedConstant(expr.op === 'ident' ? expr : expr.qualified!);
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

  #list(expr: ListLiteral): Code {
    const items = expr.items.map(({ value, optional }) => ({ code: this.compile(value), optional }));
    const folded = constantOf(this.environment, expr);
    if (folded !== undefined) return () => folded.value;
    return (frame) => {
      const list: unknown[] = [];
      for (const { code, optional } of items) {
        const value = code(frame);
        const kept = optional ? presentValue(value) : value;
        if (isFailure(kept)) return failedLiteral(frame, LIST_COST, kept);
        if (kept !== undefined) list.push(kept);
      }
      frame.cost += LIST_COST;
      return list;
    };
  }

  #map(expr: MapLiteral): Code {
    const entries = expr.entries.map(({ key, value, optional }) => ({
      key: this.compile(key),
      value: this.compile(value),
      optional,
    }));
    const folded = constantOf(this.environment, expr);
    if (folded !== undefined) return () => folded.value;
    return (frame) => {
      const map = new CelMap();
      for (const entry of entries) {
        const key = entry.key(frame);
        if (isFailure(key)) return failedLiteral(frame, MAP_COST, key);
        const value = entry.value(frame);
        const kept = entry.optional ? presentValue(value) : value;
        if (isFailure(kept)) return failedLiteral(frame, MAP_COST, kept);
        // The last of equal keys wins.
        if (kept !== undefined) mapReplace(map, key, kept);
      }
      frame.cost += MAP_COST;
      return map;
    };
  }

  #struct(expr: StructLiteral): Code {
    const fields = expr.fields.map(({ name, value, optional }) => ({ name, code: this.compile(value), optional }));
    const { name } = expr;
    return (frame) => {
      const values = new Map<string, unknown>();
      for (const field of fields) {
        const value = field.code(frame);
        const kept = field.optional ? presentValue(value) : value;
        if (isFailure(kept)) return failedLiteral(frame, STRUCT_COST, kept);
        if (kept !== undefined) values.set(field.name, kept);
      }
      frame.cost += STRUCT_COST;
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

/** A name that is a type or a constant: it costs nothing. */
function namedConstant(expr: Ident): Code {
  const { value } = expr.constant!;
  return () => value;
}

/** A literal costs the same when it could not be made. */
function failedLiteral(frame: Frame, cost: number, failure: CelEvaluationError): CelEvaluationError {
  frame.cost += cost;
  return failure;
}

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
