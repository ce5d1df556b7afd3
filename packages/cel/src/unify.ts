/** Assignability of types, with type parameters that are found while checking. */
import type { Overload } from './declarations.ts';
import { type CelType, DYN, isDynamic, paramType, sameType } from './types.ts';

/** What type parameters stand for so far. */
export class Substitution {
  #bound = new Map<string, CelType>();
  /** Numbers type parameters: messages show them. */
  #fresh = 0;

  /** A type parameter of its own. */
  param(): CelType {
    return paramType(`_var${this.#fresh++}`);
  }

  /** Arguments and result of an overload with type parameters of their own. */
  instance({ args, result }: Overload): readonly [readonly CelType[], CelType] {
    const fresh = new Map<string, CelType>();
    const renew = (type: CelType): CelType => {
      if (type.kind !== 'param') return type.params.length === 0 ? type : { ...type, params: type.params.map(renew) };
      const param = fresh.get(type.name) ?? this.param();
      fresh.set(type.name, param);
      return param;
    };
    return [args.map(renew), renew(result)];
  }

  /** Whether every value type fits its target; bindings made on the way are kept only when all fit. */
  assignAll(targets: readonly CelType[], values: readonly CelType[]): boolean {
    if (targets.length !== values.length) return false;
    const before = this.#bound;
    this.#bound = new Map(before);
    for (let i = 0; i < targets.length; i++) {
      if (!this.#assign(values[i]!, targets[i]!)) {
        this.#bound = before;
        return false;
      }
    }
    return true;
  }

  assign(target: CelType, value: CelType): boolean {
    return this.assignAll([target], [value]);
  }

  #assign(a: CelType, b: CelType): boolean {
    if (b.kind === 'param') {
      const known = this.#bound.has(b.name);
      if (this.#bind(a, b)) return true;
      if (known) return false;
    }
    if (a.kind === 'param') return this.#bind(b, a);
    if (isDynamic(a) || isDynamic(b)) return true;
    if (a.kind === 'null') return isNullable(b);
    if (b.kind === 'null') return isNullable(a);
    if (b.kind === 'wrapper') return this.#assign(a.kind === 'wrapper' ? a.params[0]! : a, b.params[0]!);
    if (a.kind === 'wrapper') return this.#assign(a.params[0]!, b);
    if (a.kind !== b.kind || a.name !== b.name) return false;
    if (a.kind === 'type') return true;
    if (a.params.length !== b.params.length) return false;
    return a.params.every((param, i) => this.#assign(param, b.params[i]!));
  }

  /** Whether `param` can stand for `type`; binds it when it is free, widens it when `type` is more general. */
  #bind(type: CelType, param: CelType): boolean {
    if (type.kind === 'param' && type.name === param.name) return true;
    const bound = this.#bound.get(param.name);
    if (bound === undefined) {
      if (this.#mentions(type, param.name)) return false;
      this.#bound.set(param.name, type);
      return true;
    }
    if (sameType(bound, type)) return true;
    if (!this.#assign(type, bound)) return false;
    const general = moreGeneral(type, bound);
    if (!this.#mentions(general, param.name)) this.#bound.set(param.name, general);
    return true;
  }

  #mentions(type: CelType, name: string): boolean {
    if (type.kind === 'param') {
      if (type.name === name) return true;
      const bound = this.#bound.get(type.name);
      return bound !== undefined && this.#mentions(bound, name);
    }
    return type.params.some((param) => this.#mentions(param, name));
  }

  /** The type with parameters replaced; free ones become `dyn` when `close` is set. */
  apply(type: CelType, close = false): CelType {
    if (type.kind === 'param') {
      const bound = this.#bound.get(type.name);
      if (bound !== undefined) return this.apply(bound, close);
      return close ? DYN : type;
    }
    if (type.params.length === 0 || type.field !== undefined) return type;
    const params = type.params.map((param) => this.apply(param, close));
    return params.every((param, i) => param === type.params[i]) ? type : { ...type, params };
  }
}

/** What may be null, as cel-go's checker has it. */
function isNullable(type: CelType): boolean {
  return ['null', 'object', 'opaque', 'optional', 'duration', 'timestamp', 'wrapper', 'param'].includes(type.kind);
}

/** The wider of two types that fit each other. */
export const moreGeneral = (a: CelType, b: CelType): CelType => (isWider(a, b) ? a : b);

function isWider(a: CelType, b: CelType): boolean {
  if (isAnything(a)) return true;
  if (isAnything(b)) return false;
  if (a.kind === 'wrapper' || b.kind === 'wrapper') return a.kind === 'wrapper';
  if (a.kind !== b.kind || a.name !== b.name || a.params.length !== b.params.length) return false;
  return a.kind === 'type' || a.params.every((param, i) => isWider(param, b.params[i]!));
}

const isAnything = ({ kind }: CelType): boolean => kind === 'dyn' || kind === 'any' || kind === 'param';
