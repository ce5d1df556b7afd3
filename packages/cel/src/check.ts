/** The type checker: resolves names and overloads and writes types into the tree. Messages are cel-go's. */
import type { Environment, Overload } from './declarations.ts';
import { readSource, SourceError } from './report.ts';
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
  formatType,
  INT,
  isDynamic,
  listOf,
  mapOf,
  optionalOf,
  runtimeName,
  sameType,
  typeOf,
  withoutBounds,
} from './types.ts';
import { moreGeneral, Substitution } from './unify.ts';
import { validateExpression } from './validate.ts';
import { CelTypeValue } from './values.ts';

/**
 * The type of an expression, and the variables that it mentions.
 * @throws CelCompileError with the first type error and its place
 */
export function checkExpression(
  root: Expr,
  source: string,
  environment: Environment,
  variables: Readonly<Record<string, CelType>>,
): { readonly type: CelType; readonly references: ReadonlySet<string> } {
  const checker = new Checker(environment, variables);
  readSource(source, () => {
    checker.check(root);
    checker.close();
    if (environment.literalChecks) validateExpression(root, environment.homogeneous);
  });
  return { type: root.type!, references: checker.references };
}

class Checker {
  readonly references = new Set<string>();
  readonly #environment: Environment;
  readonly #variables: Readonly<Record<string, CelType>>;
  readonly #substitution = new Substitution();
  readonly #locals: { readonly name: string; readonly type: CelType }[] = [];
  readonly #nodes: Expr[] = [];

  constructor(environment: Environment, variables: Readonly<Record<string, CelType>>) {
    this.#environment = environment;
    this.#variables = variables;
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
    return this.#locals.findLast((local) => local.name === name)?.type;
  }

  #withLocals<T>(locals: readonly (readonly [string, CelType])[], run: () => T): T {
    for (const [name, type] of locals) this.#locals.push({ name, type });
    const result = run();
    this.#locals.length -= locals.length;
    return result;
  }

  #ident(expr: Ident): CelType {
    return this.#local(expr.name) ?? this.#global(expr) ?? this.#undeclared(expr.at, expr.name);
  }

  #undeclared(at: number, name: string): never {
    throw new SourceError(at, `undeclared reference to '${name}' (in container '')`);
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
        if (field === undefined) throw new SourceError(expr.at, `undefined field '${expr.field}'`);
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
      default:
        throw new SourceError(expr.at, `type '${formatType(target)}' does not support field selection`);
    }
  }

  #call(expr: Call): CelType {
    const { functions } = this.#environment;
    const owner = expr.target && qualifiedName(expr.target);
    const qualified = `${owner}.${expr.name}`.replace(/^\./, '');
    // `sets.contains(a, b)` is a function with a dot in its name.
    if (owner !== undefined && functions.has(qualified)) {
      expr.name = qualified;
      expr.target = undefined;
    }
    const overloads = functions.get(expr.name.replace(/^\./, ''));
    if (overloads === undefined) return this.#undeclared(expr.at, expr.name);
    const types = expr.args.map((arg) => this.check(arg));
    if (expr.target !== undefined) types.unshift(this.check(expr.target));
    if (expr.name === '_&&_' || expr.name === '_||_') {
      expr.overloads = overloads;
      return this.#logical(expr.args);
    }
    return this.#overload(expr, overloads, types);
  }

  /** Every operand must be a `bool`. */
  #logical(args: readonly Expr[]): CelType {
    for (const { at, type } of args) if (!this.#substitution.assign(BOOL, type!)) this.#mismatch(at, BOOL, type!);
    return BOOL;
  }

  /** Notes the overloads that take these types, the receiver first; the type of the result. */
  #overload(expr: Call, overloads: readonly Overload[], types: readonly CelType[]): CelType {
    const member = expr.target !== undefined;
    const matching: Overload[] = [];
    let result: CelType | undefined;
    for (const overload of overloads) {
      if (overload.member !== member || overload.args.length !== types.length) continue;
      const [args, declared] = overload.generics
        ? this.#substitution.instance(overload)
        : [overload.args, overload.result];
      if (!this.#substitution.assignAll(args, types)) continue;
      matching.push(overload);
      const type = this.#substitution.apply(declared);
      if (result === undefined) result = type;
      else if (!isDynamic(result) && !sameType(result, type)) result = DYN;
    }
    expr.overloads = matching;
    if (result !== undefined) return result;
    const names = types.map((type) => formatType(this.#substitution.apply(type, true)));
    const applied = member ? `${names[0]}.(${names.slice(1).join(', ')})` : `(${names.join(', ')})`;
    const name = expr.name.replace(/^\./, '');
    throw new SourceError(expr.at, `found no matching overload for '${name}' applied to '${applied}'`);
  }

  #list(expr: ListLiteral): CelType {
    let element: CelType | undefined;
    for (const item of expr.items) {
      const type = this.check(item.value);
      element = this.#join(element, item.optional ? this.#unwrap(item.value.at, type) : type);
    }
    return listOf(element ?? this.#substitution.param());
  }

  #map(expr: MapLiteral): CelType {
    let key: CelType | undefined;
    let value: CelType | undefined;
    for (const entry of expr.entries) {
      key = this.#join(key, this.check(entry.key));
      const type = this.check(entry.value);
      value = this.#join(value, entry.optional ? this.#unwrap(entry.value.at, type) : type);
    }
    return mapOf(key ?? this.#substitution.param(), value ?? this.#substitution.param());
  }

  #unwrap(at: number, type: CelType): CelType {
    if (type.kind === 'optional') return type.params[0]!;
    if (type.kind !== 'dyn' && type.kind !== 'any') this.#mismatch(at, optionalOf(type), type);
    return type;
  }

  /** What members of both types are. Whether they may differ at all is asked of a whole text (`validate.ts`). */
  #join(previous: CelType | undefined, current: CelType): CelType {
    if (previous === undefined) return current;
    return this.#substitution.assign(previous, current) ? moreGeneral(previous, current) : DYN;
  }

  #struct(expr: StructLiteral): CelType {
    const name = expr.name.replace(/^\./, '');
    const struct = this.#environment.struct(name);
    if (struct === undefined) {
      if (!this.#environment.types.has(name)) return this.#undeclared(expr.at, expr.name);
      throw new SourceError(expr.at, `'${name}' is not a message type`);
    }
    expr.name = name;
    for (const field of expr.fields) {
      let type = this.check(field.value);
      if (field.optional) type = this.#unwrap(field.value.at, type);
      const declared = struct.field(field.name);
      if (declared === undefined) throw new SourceError(field.at, `undefined field '${field.name}'`);
      if (!this.#substitution.assign(declared, type)) {
        const wanted = `expected type of field '${field.name}' is '${formatType(declared)}'`;
        throw new SourceError(field.at, `${wanted} but provided type is '${formatType(type)}'`);
      }
    }
    return struct.type;
  }

  #fold(expr: Fold): CelType {
    const range = this.#substitution.apply(this.check(expr.range));
    const [first, second] = this.#rangeTypes(expr, range);
    const types = expr.names.length === 2 ? [first, second] : [range.kind === 'map' ? first : second];
    const locals = expr.names.map((name, i) => [name, types[i]!] as const);
    return this.#withLocals(locals, () => {
      if (expr.test !== undefined) {
        this.check(expr.test);
        this.#logical([expr.test]);
      }
      const body = expr.body === undefined ? undefined : this.check(expr.body);
      return this.#foldType(expr, [types[0]!, first, body]);
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
      default: {
        const found = `expression of type '${formatType(range)}'`;
        const message = `${found} cannot be range of a comprehension (must be list, map, or dynamic)`;
        throw new SourceError(expr.range.at, message);
      }
    }
  }

  /** By the types of the first name, of a key and of the body. */
  #foldType(expr: Fold, [variable, key, body]: readonly [CelType, CelType, CelType | undefined]): CelType {
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
        return isDynamic(entry) ? mapOf(DYN, DYN) : this.#mismatch(expr.body!.at, mapOf(DYN, DYN), entry);
      }
    }
  }

  #bind(expr: Bind): CelType {
    const init = this.check(expr.init);
    return this.#withLocals([[expr.name, init]], () => this.check(expr.body));
  }

  #mismatch(at: number, expected: CelType, found: CelType): never {
    throw new SourceError(at, `expected type '${formatType(expected)}' but found '${formatType(found)}'`);
  }
}
