/**
 * Turns a checked tree into closures. Each closure evaluates its node in a frame and counts the cost as cel-go's cost
 * tracker does: 1 for a name and for each step of a path, 10, 30 and 40 for making a list, a map, an object.
 */

import { compileCall } from './compile-call.ts';
import { compileFold } from './compile-fold.ts';
import { LIST_COST, MAP_COST, STRUCT_COST } from './cost-models.ts';
import type { Environment } from './declarations.ts';
import { CelBudgetError, CelCompileError, CelEvaluationError } from './errors.ts';
import { isSet, mapInsert, optionalIndex, select, stepInOptional } from './map-access.ts';
import type { Bind, Expr, Ident, ListLiteral, MapLiteral, Select, StructLiteral } from './syntax.ts';
import type { CelField, CelType } from './types.ts';
import { CelMap, CelOptional, CelStruct, fromJson, isPlainObject, NONE } from './values.ts';

export interface Frame {
  /** Bound variables first, then local names. */
  readonly values: unknown[];
  cost: number;
  readonly limit: number;
}

/** One node, ready to run. */
export type Code = (frame: Frame) => unknown;

/** Where a declared variable goes. */
export interface Binding {
  readonly name: string;
  readonly slot: number;
  readonly wrap: (raw: unknown) => unknown;
}

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

/** Adds to the cost. @throws CelBudgetError beyond the limit of the call */
export function spend(frame: Frame, cost: number): void {
  frame.cost += cost;
  if (frame.cost > frame.limit) throw new CelBudgetError('call');
}

/** Lists and maps of literals are made when the program is, as cel-go does: they cost nothing when it runs. */
export function constantOf(expr: Expr): { readonly value: unknown } | undefined {
  if (expr.op === 'literal') return { value: expr.value };
  if (expr.op === 'list') {
    const items = expr.items.map(({ value, optional }) => (optional ? undefined : constantOf(value)));
    return items.every((item) => item !== undefined) ? { value: items.map(({ value }) => value) } : undefined;
  }
  if (expr.op !== 'map') return undefined;
  const map = new CelMap();
  for (const entry of expr.entries) {
    const key = entry.optional ? undefined : constantOf(entry.key);
    const value = constantOf(entry.value);
    if (key === undefined || value === undefined) return undefined;
    try {
      mapInsert(map, key.value, value.value);
    } catch {
      // A key that is there twice is an error of the evaluation.
      return undefined;
    }
  }
  return { value: map };
}

export class Compiler {
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
    switch (expr.op) {
      case 'literal': {
        const { value } = expr;
        return () => value;
      }
      case 'ident':
        return this.#ident(expr);
      case 'select':
        return this.#select(expr);
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

  #ident(expr: Ident): Code {
    if (expr.valueless) throw new CelCompileError('program', `reference to undefined type: ${expr.name}`);
    if (expr.constant !== undefined) {
      const { value } = expr.constant;
      return () => value;
    }
    const local = this.#locals.findLast(({ name }) => name === expr.name);
    if (local?.lazy === true) return lazyLocal(local.slot);
    const name = expr.name.replace(/^\./, '');
    const slot = local?.slot ?? this.#slot(name);
    return (frame) => {
      frame.cost += 1;
      const value = frame.values[slot];
      if (value === undefined) throw new CelEvaluationError(`no such attribute(s): ${name}`);
      return value;
    };
  }

  #slot(name: string): number {
    const known = this.bound.find((entry) => entry.name === name);
    if (known !== undefined) return known.slot;
    const slot = this.slots++;
    this.bound.push({ name, slot, wrap: bindingWrap(this.#variables[name]!) });
    return slot;
  }

  #select(expr: Select): Code {
    if (expr.qualified !== undefined) return this.#ident(expr.qualified);
    const operand = this.compile(expr.operand);
    const name = expr.resolved?.property ?? expr.field;
    const lifted = expr.operand.type?.kind === 'optional';
    if (expr.test) {
      // `has` itself is free; the path up to the field is not.
      return (frame) => isSet(operand(frame), name);
    }
    if (expr.optional || lifted) {
      const step = expr.optional ? optionalIndex : stepInOptional;
      return optionalField(operand, { step, name, wrap: expr.resolved?.type.wrap });
    }
    if (expr.resolved !== undefined) return objectField(operand, expr.resolved);
    const wrap = expr.operand.type?.kind === 'map' ? expr.operand.type.params[1]?.wrap : undefined;
    if (wrap !== undefined) {
      return (frame) => {
        const target = operand(frame);
        frame.cost += 1;
        return wrap(select(target, name));
      };
    }
    return (frame) => {
      const target = operand(frame);
      frame.cost += 1;
      return select(target, name);
    };
  }

  #list(expr: ListLiteral): Code {
    const folded = constantOf(expr);
    if (folded !== undefined) return () => folded.value;
    const items = expr.items.map(({ value, optional }) => ({ code: this.compile(value), optional }));
    if (items.every(({ optional }) => !optional)) {
      const codes = items.map(({ code }) => code);
      return (frame) => {
        const list: unknown[] = new Array(codes.length);
        for (let i = 0; i < codes.length; i++) list[i] = codes[i]!(frame);
        frame.cost += LIST_COST;
        return list;
      };
    }
    return (frame) => {
      const list: unknown[] = [];
      for (const { code, optional } of items) {
        const value = code(frame);
        if (!optional) list.push(value);
        else if (presentValue(value) !== undefined) list.push(presentValue(value));
      }
      frame.cost += LIST_COST;
      return list;
    };
  }

  #map(expr: MapLiteral): Code {
    const folded = constantOf(expr);
    if (folded !== undefined) return () => folded.value;
    const entries = expr.entries.map(({ key, value, optional }) => ({
      key: this.compile(key),
      value: this.compile(value),
      optional,
    }));
    return (frame) => {
      const map = new CelMap();
      for (const entry of entries) {
        const key = entry.key(frame);
        const value = entry.value(frame);
        const kept = entry.optional ? presentValue(value) : value;
        if (kept !== undefined) mapInsert(map, key, kept);
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

function lazyLocal(slot: number): Code {
  return (frame) => {
    frame.cost += 1;
    let value = frame.values[slot];
    if (value instanceof Pending) {
      value = value.init(frame);
      frame.values[slot] = value;
    }
    return value;
  };
}

/** The value of an optional; undefined for none. @throws CelEvaluationError when it is no optional */
function presentValue(value: unknown): unknown {
  if (value instanceof CelOptional) return value.value;
  throw new CelEvaluationError(`cannot initialize optional entry from non-optional value`);
}

/** A declared field of an object: the hottest path there is. */
function objectField(operand: Code, { property, type }: CelField): Code {
  const { wrap } = type;
  const risky = property in Object.prototype;
  return (frame) => {
    const target = operand(frame);
    frame.cost += 1;
    if (!isPlainObject(target) || risky) {
      const value = select(target, property);
      return wrap === undefined ? value : wrap(value);
    }
    const value = target[property];
    if (value === undefined) throw new CelEvaluationError(`no such key: ${property}`);
    if (wrap !== undefined) return wrap(value);
    return typeof value === 'number' ? fromJson(value) : value;
  };
}

interface OptionalField {
  readonly step: (inner: unknown, key: unknown) => CelOptional;
  readonly name: string;
  readonly wrap: ((raw: unknown) => unknown) | undefined;
}

function optionalField(operand: Code, { step, name, wrap }: OptionalField): Code {
  return (frame) => {
    const target = operand(frame);
    frame.cost += 1;
    const inner = target instanceof CelOptional ? target.value : target;
    if (inner === undefined) return NONE;
    const value = step(inner, name);
    return wrap === undefined || value.value === undefined ? value : new CelOptional(wrap(value.value));
  };
}
