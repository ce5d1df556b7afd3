/** The type checker: resolves names and overloads and writes types into the tree. Messages are cel-go's. */
import type { Environment, Overload } from './declarations.ts';
import { Report } from './report.ts';
import {
  type Bind,
  type Call,
  type Expr,
  type Fold,
  type Ident,
  type ListLiteral,
  type MapLiteral,
  qualifiedName,
  type Select,
  type StructLiteral,
} from './syntax.ts';
import {
  BOOL,
  type CelType,
  DYN,
  ERROR,
  formatType,
  INT,
  isDynamic,
  listOf,
  mapOf,
  optionalOf,
  paramType,
  sameType,
  typeOf,
  withoutBounds,
} from './types.ts';
import { moreGeneral, Substitution } from './unify.ts';
import { validateAggregates } from './validate-aggregates.ts';
import { validateFormats } from './validate-formats.ts';
import { validateLiterals } from './validate-literals.ts';
import { CelTypeValue, runtimeName } from './values.ts';

export interface CheckedExpression {
  readonly root: Expr;
  readonly type: CelType;
  readonly references: ReadonlySet<string>;
}

/** @throws CelCompileError with every fault */
export function checkExpression(
  root: Expr,
  source: string,
  environment: Environment,
  variables: Readonly<Record<string, CelType>>,
): CheckedExpression {
  const report = new Report(source);
  const checker = new Checker(environment, variables, report);
  checker.check(root);
  report.throwIfAny();
  checker.close();
  if (environment.literalChecks) {
    validateLiterals(root, report);
    validateFormats(root, report);
    if (environment.homogeneous) validateAggregates(root, report);
  }
  report.throwIfAny();
  return { root, type: root.type!, references: checker.references };
}

class Checker {
  readonly references = new Set<string>();
  readonly #environment: Environment;
  readonly #variables: Readonly<Record<string, CelType>>;
  readonly #report: Report;
  readonly #substitution = new Substitution();
  readonly #locals: { readonly name: string; readonly type: CelType }[] = [];
  readonly #nodes: Expr[] = [];
  #fresh = 0;
  /** Above zero, literals may hold values of several types. */
  #mixed = 0;

  constructor(environment: Environment, variables: Readonly<Record<string, CelType>>, report: Report) {
    this.#environment = environment;
    this.#variables = variables;
    this.#report = report;
  }

  check(expr: Expr): CelType {
    const type = this.#infer(expr);
    expr.type = type;
    this.#nodes.push(expr);
    return type;
  }

  /** Free type parameters become `dyn`. */
  close(): void {
    for (const node of this.#nodes) node.type = this.#substitution.apply(node.type!, true);
  }

  #infer(expr: Expr): CelType {
    switch (expr.op) {
      case 'literal':
        return expr.literalType;
      case 'ident':
        return this.#ident(expr);
      case 'select':
        return this.#select(expr);
      case 'call':
        return this.#call(expr);
      case 'list':
        return this.#list(expr);
      case 'map':
        return this.#map(expr);
      case 'struct':
        return this.#struct(expr);
      case 'fold':
        return this.#fold(expr);
      case 'bind':
        return this.#bind(expr);
    }
  }

  #local(name: string): CelType | undefined {
    for (let i = this.#locals.length - 1; i >= 0; i--) {
      if (this.#locals[i]!.name === name) return this.#locals[i]!.type;
    }
    return undefined;
  }

  #withLocals<T>(locals: readonly (readonly [string, CelType])[], run: () => T): T {
    for (const [name, type] of locals) this.#locals.push({ name, type });
    const result = run();
    this.#locals.length -= locals.length;
    return result;
  }

  #ident(expr: Ident): CelType {
    const local = this.#local(expr.name);
    if (local !== undefined) return local;
    const found = this.#global(expr);
    if (found !== undefined) return found;
    return this.#fault(expr.at, `undeclared reference to '${expr.name.replace(/^\./, '')}' (in container '')`);
  }

  /** A variable, or a type as a value. */
  #global(expr: Ident): CelType | undefined {
    const name = expr.name.replace(/^\./, '');
    if (Object.hasOwn(this.#variables, name)) {
      this.references.add(name);
      return this.#variables[name]!;
    }
    const type = this.#environment.types.get(name);
    if (type === undefined) return undefined;
    expr.constant = { value: new CelTypeValue(runtimeName(type)) };
    return typeOf(type);
  }

  #select(expr: Select): CelType {
    if (!expr.test && !expr.optional) {
      const qualified = this.#qualified(expr);
      if (qualified !== undefined) return qualified;
    }
    let target = this.#substitution.apply(this.check(expr.operand));
    let optional = expr.optional;
    if (target.kind === 'optional') {
      optional = true;
      target = this.#substitution.apply(target.params[0]!);
    }
    const field = this.#field(expr, target);
    if (expr.test) return BOOL;
    return optional && field.kind !== 'error' ? optionalOf(field) : field;
  }

  /** `a.b.c` may be the whole name of a variable or of a type. */
  #qualified(expr: Select): CelType | undefined {
    const name = qualifiedName(expr);
    if (name === undefined || this.#local(name.slice(0, name.indexOf('.'))) !== undefined) return undefined;
    const ident: Ident = { op: 'ident', at: expr.at, name };
    const type = this.#global(ident);
    if (type === undefined) return undefined;
    ident.type = type;
    expr.qualified = ident;
    return type;
  }

  #field(expr: Select, target: CelType): CelType {
    switch (target.kind) {
      case 'object': {
        const field = target.field?.(expr.field) ?? target.field?.(`__${expr.field}__`);
        if (field === undefined) return this.#fault(expr.at, `undefined field '${expr.field}'`);
        expr.resolved = field;
        return field.type;
      }
      case 'map':
        return withoutBounds(target.params[1]!);
      case 'param':
        this.#substitution.assign(target, DYN);
        return DYN;
      case 'dyn':
      case 'any':
        return DYN;
      case 'error':
        return ERROR;
      case 'opaque':
        // These are object types that nobody described.
        return this.#fault(expr.at, `unexpected failed resolution of '${this.#format(target)}'`);
      default:
        return this.#fault(expr.at, `type '${this.#format(target)}' does not support field selection`);
    }
  }

  #call(expr: Call): CelType {
    const { functions } = this.#environment;
    if (expr.target !== undefined) {
      const owner = qualifiedName(expr.target);
      const qualified = `${owner}.${expr.name}`.replace(/^\./, '');
      // `sets.contains(a, b)` is a function with a dot in its name, unless `sets` is a name in scope.
      if (owner !== undefined && functions.has(qualified) && this.#local(owner) === undefined) {
        expr.name = qualified;
        expr.target = undefined;
      }
    }
    const name = expr.name.replace(/^\./, '');
    const overloads = functions.get(name);
    const args = expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    // The values of a text's clauses may be of any kinds: alone there a literal list need not be of one.
    const mixed = name === 'format' && expr.target !== undefined;
    const types = args.map((arg) => (mixed ? this.#checkMixed(arg) : this.check(arg)));
    if (overloads === undefined) return this.#fault(expr.at, `undeclared reference to '${name}' (in container '')`);
    if (name === '_&&_' || name === '_||_') return this.#logical(expr, args, overloads);
    return this.#resolve(expr, name, overloads, types);
  }

  #checkMixed(expr: Expr): CelType {
    this.#mixed++;
    const type = this.check(expr);
    this.#mixed--;
    return type;
  }

  #logical(expr: Call, args: readonly Expr[], overloads: readonly Overload[]): CelType {
    for (const arg of args) this.#expectType(arg, BOOL);
    expr.overloads = overloads;
    return BOOL;
  }

  #resolve(expr: Call, name: string, overloads: readonly Overload[], types: readonly CelType[]): CelType {
    const member = expr.target !== undefined;
    const matching: Overload[] = [];
    let result: CelType | undefined;
    for (const overload of overloads) {
      if (overload.member !== member || overload.args.length !== types.length) continue;
      const fresh = new Map<string, CelType>();
      const args = overload.args.map((arg) => this.#renew(arg, fresh));
      if (!this.#substitution.assignAll(args, types)) continue;
      matching.push(overload);
      const type = this.#substitution.apply(this.#renew(overload.result, fresh));
      if (result === undefined) result = type;
      else if (!isDynamic(result) && !sameType(result, type)) result = DYN;
    }
    if (result === undefined) {
      const names = types.map((type) => this.#format(type));
      const applied = member ? `${names[0]}.(${names.slice(1).join(', ')})` : `(${names.join(', ')})`;
      if (types.some((type) => type.kind === 'error')) return ERROR;
      return this.#fault(expr.at, `found no matching overload for '${name}' applied to '${applied}'`);
    }
    expr.overloads = matching;
    return result;
  }

  /** A copy of a declared type with type parameters of its own. */
  #renew(type: CelType, fresh: Map<string, CelType>): CelType {
    if (type.kind === 'param') {
      let param = fresh.get(type.name);
      if (param === undefined) {
        param = this.#param();
        fresh.set(type.name, param);
      }
      return param;
    }
    if (type.params.length === 0) return type;
    return { ...type, params: type.params.map((param) => this.#renew(param, fresh)) };
  }

  #param(): CelType {
    return paramType(`_var${this.#fresh++}`);
  }

  #list(expr: ListLiteral): CelType {
    let element: CelType | undefined;
    for (const item of expr.items) {
      const type = this.check(item.value);
      element = this.#join(item.value.at, element, item.optional ? this.#unwrap(item.value.at, type) : type);
    }
    return listOf(element ?? this.#param());
  }

  #map(expr: MapLiteral): CelType {
    let key: CelType | undefined;
    let value: CelType | undefined;
    for (const entry of expr.entries) {
      key = this.#join(entry.key.at, key, this.check(entry.key));
      const type = this.check(entry.value);
      value = this.#join(entry.value.at, value, entry.optional ? this.#unwrap(entry.value.at, type) : type);
    }
    return mapOf(key ?? this.#param(), value ?? this.#param());
  }

  #unwrap(at: number, type: CelType): CelType {
    const known = this.#substitution.apply(type);
    if (known.kind === 'optional') return known.params[0]!;
    if (isDynamic(known)) return DYN;
    return this.#mismatch(at, optionalOf(known), known);
  }

  #join(at: number, previous: CelType | undefined, current: CelType): CelType {
    if (previous === undefined) return current;
    if (this.#substitution.assign(previous, current)) return moreGeneral(previous, current);
    if (!this.#environment.homogeneous || this.#mixed > 0) return DYN;
    return this.#mismatch(at, previous, current);
  }

  #struct(expr: StructLiteral): CelType {
    const name = expr.name.replace(/^\./, '');
    const struct = this.#environment.struct(name);
    if (struct === undefined) {
      const known = this.#environment.types.has(name);
      return this.#fault(
        expr.at,
        known ? `'${name}' is not a message type` : `undeclared reference to '${name}' (in container '')`,
      );
    }
    expr.name = name;
    for (const field of expr.fields) {
      let type = this.check(field.value);
      if (field.optional) type = this.#unwrap(field.value.at, type);
      const declared = struct.field(field.name);
      if (declared === undefined) {
        this.#fault(field.at, `undefined field '${field.name}'`);
      } else if (!this.#substitution.assign(declared, type)) {
        const found = this.#format(type);
        this.#fault(
          field.at,
          `expected type of field '${field.name}' is '${this.#format(declared)}' but provided type is '${found}'`,
        );
      }
    }
    return struct.type;
  }

  #fold(expr: Fold): CelType {
    const range = this.#substitution.apply(this.check(expr.range));
    const [first, second] = this.#rangeTypes(expr, range);
    const locals: (readonly [string, CelType])[] =
      expr.names.length === 2
        ? [
            [expr.names[0], first],
            [expr.names[1], second],
          ]
        : [[expr.names[0], range.kind === 'map' ? first : second]];
    return this.#withLocals(locals, () => {
      if (expr.test !== undefined) {
        this.check(expr.test);
        this.#expectType(expr.test, BOOL);
      }
      const body = expr.body === undefined ? undefined : this.check(expr.body);
      return this.#foldType(expr, locals[0]![1], first, body);
    });
  }

  /** Key (or index) and value of what is looped over. */
  #rangeTypes(expr: Fold, range: CelType): readonly [CelType, CelType] {
    switch (range.kind) {
      case 'list':
        return [INT, range.params[0]!];
      case 'map':
        return [range.params[0]!, range.params[1]!];
      case 'param':
        this.#substitution.assign(range, DYN);
        return [DYN, DYN];
      case 'dyn':
        return [DYN, DYN];
      case 'error':
        return [ERROR, ERROR];
      default:
        this.#report.add(
          expr.range.at,
          `expression of type '${this.#format(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
        return [ERROR, ERROR];
    }
  }

  #foldType(expr: Fold, variable: CelType, key: CelType, body: CelType | undefined): CelType {
    switch (expr.kind) {
      case 'all':
      case 'exists':
      case 'existsOne':
        return BOOL;
      case 'filter':
        return listOf(variable);
      case 'map':
      case 'transformList':
        return listOf(body!);
      case 'transformMap':
        return mapOf(key, body!);
      case 'transformMapEntry': {
        const entry = this.#substitution.apply(body!);
        if (entry.kind === 'map') return mapOf(entry.params[0]!, entry.params[1]!);
        if (isDynamic(entry)) return mapOf(DYN, DYN);
        return this.#mismatch(expr.body!.at, mapOf(DYN, DYN), entry);
      }
    }
  }

  #bind(expr: Bind): CelType {
    const init = this.check(expr.init);
    return this.#withLocals([[expr.name, init]], () => this.check(expr.body));
  }

  #expectType(expr: Expr, expected: CelType): void {
    if (!this.#substitution.assign(expected, expr.type!)) this.#mismatch(expr.at, expected, expr.type!);
  }

  #mismatch(at: number, expected: CelType, found: CelType): CelType {
    return this.#fault(at, `expected type '${this.#format(expected)}' but found '${this.#format(found)}'`);
  }

  #format(type: CelType): string {
    return formatType(this.#substitution.apply(type));
  }

  #fault(at: number, message: string): CelType {
    this.#report.add(at, message);
    return ERROR;
  }
}
