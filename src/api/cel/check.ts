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
    if (environment.homogeneous) validateAggregates(root, report);
    validateFormats(root, report);
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
  /** Type parameters are numbered as upstream's are, with those of the loops that macros stand for: messages show them. */
  #fresh = 0;

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
    return this.#undeclared(expr.at, expr.name);
  }

  #undeclared(at: number, name: string): CelType {
    return this.#fault(at, `undeclared reference to '${name}' (in container '')`);
  }

  /** A variable, or a type as a value. */
  #global(expr: Ident): CelType | undefined {
    const name = expr.name.replace(/^\./, '');
    if (Object.hasOwn(this.#variables, name)) {
      this.references.add(name);
      return this.#variables[name]!;
    }
    const type = this.#environment.types.get(name);
    if (type === undefined) {
      const valueless = this.#environment.valueless.get(name);
      if (valueless === undefined) return undefined;
      expr.valueless = true;
      return typeOf(valueless);
    }
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
    return optional ? optionalOf(field) : field;
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
      case 'error':
        return DYN;
      case 'opaque':
        // Most of these are object types that nobody described.
        if (isClosed(target)) return this.#noSelection(expr.at, target);
        return this.#fault(expr.at, `unexpected failed resolution of '${formatType(target)}'`);
      default:
        return this.#noSelection(expr.at, target);
    }
  }

  #noSelection(at: number, target: CelType): CelType {
    this.#report.add(at, `type '${formatType(target)}' does not support field selection`);
    return DYN;
  }

  #call(expr: Call): CelType {
    const { functions } = this.#environment;
    const types = expr.args.map((arg) => this.check(arg));
    if (expr.target !== undefined) {
      const owner = qualifiedName(expr.target);
      const qualified = `${owner}.${expr.name}`.replace(/^\./, '');
      // `sets.contains(a, b)` is a function with a dot in its name.
      if (owner !== undefined && functions.has(qualified)) {
        expr.name = qualified;
        expr.target = undefined;
      } else {
        types.unshift(this.check(expr.target));
      }
    }
    const overloads = functions.get(expr.name.replace(/^\./, ''));
    if (overloads === undefined) {
      return this.#undeclared(expr.at, expr.name);
    }
    if (expr.name === '_&&_' || expr.name === '_||_') {
      expr.overloads = overloads;
      return this.#logical(expr.args);
    }
    const resolved = this.#resolve(expr.at, expr.name.replace(/^\./, ''), expr.target !== undefined, types);
    if (resolved === undefined) return ERROR;
    expr.overloads = resolved.matching;
    return resolved.result;
  }

  /** Every operand must be a `bool`; each that is not is told. */
  #logical(args: readonly Expr[]): CelType {
    let result = BOOL;
    for (const { at, type } of args) {
      if (this.#substitution.assign(BOOL, type!)) continue;
      result = this.#mismatch(at, BOOL, type!);
    }
    return result;
  }

  /** The overloads that take these types, the receiver first; undefined, and told, when none does. */
  #resolve(
    at: number,
    name: string,
    member: boolean,
    types: readonly CelType[],
  ): { readonly matching: readonly Overload[]; readonly result: CelType } | undefined {
    const matching: Overload[] = [];
    let result: CelType | undefined;
    for (const overload of this.#environment.functions.get(name)!) {
      if (overload.member !== member) continue;
      if (overload.args.length !== types.length) {
        this.#fresh += overload.generics;
        continue;
      }
      const [args, declared] = overload.generics === 0 ? [overload.args, overload.result] : this.#renewed(overload);
      if (!this.#substitution.assignAll(args, types)) continue;
      matching.push(overload);
      const type = this.#substitution.apply(declared);
      if (result === undefined) result = type;
      else if (!isDynamic(result) && !sameType(result, type)) result = DYN;
    }
    if (result !== undefined) return { matching, result };
    const applied = this.#applied(member, types);
    this.#report.add(at, `found no matching overload for '${name}' applied to '${applied}'`);
    return undefined;
  }

  #applied(member: boolean, types: readonly CelType[]): string {
    const names = types.map((type) => formatType(this.#substitution.apply(type, true)));
    return member ? `${names[0]}.(${names.slice(1).join(', ')})` : `(${names.join(', ')})`;
  }

  /** Arguments and result of an overload with type parameters of their own. */
  #renewed(overload: Overload): readonly [readonly CelType[], CelType] {
    const fresh = new Map<string, CelType>();
    const result = this.#renew(overload.result, fresh);
    return [overload.args.map((arg) => this.#renew(arg, fresh)), result];
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
      element = this.#join(element, item.optional ? this.#unwrap(item.value.at, type) : type);
    }
    return listOf(element ?? this.#param());
  }

  #map(expr: MapLiteral): CelType {
    let key: CelType | undefined;
    let value: CelType | undefined;
    for (const entry of expr.entries) {
      key = this.#join(key, this.check(entry.key));
      const type = this.check(entry.value);
      value = this.#join(value, entry.optional ? this.#unwrap(entry.value.at, type) : type);
    }
    return mapOf(key ?? this.#param(), value ?? this.#param());
  }

  #unwrap(at: number, type: CelType): CelType {
    if (type.kind === 'optional') return type.params[0]!;
    if (type.kind !== 'dyn' && type.kind !== 'any') this.#mismatch(at, optionalOf(type), type);
    return type;
  }

  /** What members of both types are. Whether they may differ at all is asked of a whole text (`validate-aggregates.ts`). */
  #join(previous: CelType | undefined, current: CelType): CelType {
    if (previous === undefined) return current;
    return this.#substitution.assign(previous, current) ? moreGeneral(previous, current) : DYN;
  }

  #struct(expr: StructLiteral): CelType {
    const name = expr.name.replace(/^\./, '');
    const struct = this.#environment.struct(name);
    if (struct === undefined) {
      const known = this.#environment.types.has(name);
      return this.#fault(
        expr.at,
        known ? `'${name}' is not a message type` : `undeclared reference to '${expr.name}' (in container '')`,
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
        const found = formatType(type);
        this.#fault(
          field.at,
          `expected type of field '${field.name}' is '${formatType(declared)}' but provided type is '${found}'`,
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
    const accumulator = this.#accumulator(expr);
    if (expr.misnamedAt !== undefined) this.#undeclared(expr.misnamedAt, expr.names[0]);
    return this.#withLocals(locals, () => {
      const test = expr.test === undefined ? undefined : this.check(expr.test);
      const body = expr.body === undefined ? undefined : this.check(expr.body);
      const result = this.#foldType(expr, accumulator, locals[0]![1], first, body);
      if (test !== undefined) this.#foldTest(expr, test, result, accumulator ?? result);
      return result.kind === 'error' ? accumulator! : result;
    });
  }

  /** What upstream's loop begins with, where that has a type of its own. */
  #accumulator({ kind }: Fold): CelType | undefined {
    if (kind === 'transformMap' || kind === 'transformMapEntry') return mapOf(this.#param(), this.#param());
    return kind === 'all' || kind === 'exists' || kind === 'existsOne' ? undefined : listOf(this.#param());
  }

  /** Upstream spells a loop out: `all` and `exists` join the tests with an operator, the others choose by them. */
  #foldTest(expr: Fold, test: CelType, step: CelType, skipped: CelType): void {
    if (expr.kind === 'all' || expr.kind === 'exists') {
      this.#logical([expr.test!]);
      return;
    }
    const [kept, left] = expr.kind === 'existsOne' ? [INT, INT] : [step, skipped];
    this.#resolve(expr.at, '_?_:_', false, [test, kept, left]);
    // `count == 1` has a type parameter.
    if (expr.kind === 'existsOne') this.#fresh++;
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
      case 'error':
        return [DYN, DYN];
      default:
        this.#report.add(
          expr.range.at,
          `expression of type '${formatType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
        return [ERROR, ERROR];
    }
  }

  #foldType(
    expr: Fold,
    accumulator: CelType | undefined,
    variable: CelType,
    key: CelType,
    body: CelType | undefined,
  ): CelType {
    switch (expr.kind) {
      case 'all':
      case 'exists':
        return BOOL;
      case 'existsOne':
        // `count + 1` asks the overload of lists, which has a type parameter.
        this.#fresh++;
        return BOOL;
      case 'filter':
        return this.#appended(accumulator!, variable);
      case 'map':
      case 'transformList':
        return this.#appended(accumulator!, body!);
      case 'transformMap':
        this.#fresh += 4;
        this.#substitution.assign(accumulator!, mapOf(key, body!));
        return mapOf(key, body!);
      case 'transformMapEntry': {
        const entry = this.#substitution.apply(body!);
        this.#fresh += 4;
        if (entry.kind === 'map') {
          this.#substitution.assign(accumulator!, entry);
          return mapOf(entry.params[0]!, entry.params[1]!);
        }
        if (isDynamic(entry)) return mapOf(DYN, DYN);
        const applied = this.#applied(false, [accumulator!, body!]);
        return this.#fault(expr.at, `found no matching overload for 'cel.@mapInsert' applied to '${applied}'`);
      }
    }
  }

  /** `list + [item]`: the overload of lists has a type parameter. */
  #appended(list: CelType, item: CelType): CelType {
    this.#fresh++;
    this.#substitution.assign(list, listOf(item));
    return listOf(item);
  }

  #bind(expr: Bind): CelType {
    // To upstream it is a loop over `[]` that ends with the name.
    this.#fresh++;
    const init = this.check(expr.init);
    if (expr.name.startsWith('.')) this.#undeclared(expr.at, expr.name);
    return this.#withLocals([[expr.name, init]], () => this.check(expr.body));
  }

  #mismatch(at: number, expected: CelType, found: CelType): CelType {
    return this.#fault(at, `expected type '${formatType(expected)}' but found '${formatType(found)}'`);
  }

  #fault(at: number, message: string): CelType {
    this.#report.add(at, message);
    return ERROR;
  }
}

/** Opaque to upstream too; the others it takes for objects. */
const isClosed = ({ name }: CelType): boolean => name === 'net.IP' || name === 'net.CIDR';
